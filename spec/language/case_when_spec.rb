# frozen_string_literal: true

module CaseWhen
  LIMIT = 7

  class Shape; end
  class Circle < Shape; end
  class Square < Shape; end
  class Token; end

  LIST = [1, 3..5, String, :a, nil, 2.5].freeze

  # An object with a `===` of its own.
  class Multiple
    def initialize(number) = @number = number
    def ===(other) = other.is_a?(Integer) && other % @number == 0
  end

  MULTIPLES = [Multiple.new(7), Multiple.new(4)].freeze

  # Its === is private. `case` and `in` call it all the same.
  class Secret
    def initialize(value) = @value = value

    private

    def ===(other) = other == @value
  end

  class Everything
    class << self
      private

      def ===(_other) = true
    end
  end
end

RSpec.describe "case" do
  on_every_backend do
    it "compares with values" do
      expect do |x|
        case x
        when 0 then :zero
        when 1, 2, 3 then :few
        when CaseWhen::LIMIT then :limit
        when -1.0 then :float
        else :many
        end
      end.to be_same_as_ruby.over(0, 1, 3, 7, 8, -1, -1.0, 2.0, Float::NAN)
    end

    it "asks a private ===" do
      secret = CaseWhen::Secret.new(3)
      expect do |x|
        kind =
          case x
          when secret then 1
          when CaseWhen::Everything then 2
          end
        matched =
          case x
          in ^secret then 1
          in CaseWhen::Everything then 3
          end
        [kind, matched]
      end.to be_same_as_ruby.over(3, 4, nil)
      expect { |x| secret === x }.to be_same_as_ruby.over(3) # rubocop:disable Style/CaseEquality
    end

    it "compares with ranges" do
      expect do |x|
        case x
        when 0..9 then 1
        when 10...20 then 2
        when 20.0..30.5 then 3
        end
      end.to be_same_as_ruby.over(0, 9, 9.5, 10, 19, 19.9, 20, 30.5, 30.6, -1, Float::NAN)
    end

    it "compares with classes" do
      expect do |x|
        case x
        when Integer then x + 1
        when Float then x * 2
        when nil then 0
        when true, false then -1
        when Symbol then x
        end
      end.to be_same_as_ruby.over(1, 2.5, nil, true, false, :a)
    end

    it "compares objects with their classes" do
      objects = [CaseWhen::Circle.new, CaseWhen::Square.new, CaseWhen::Shape.new, CaseWhen::Token.new, nil, 1]
      expect do |x|
        case x
        when CaseWhen::Circle then 1
        when CaseWhen::Shape then 2
        when NilClass then 3
        when Comparable then 4
        else 5
        end
      end.to be_same_as_ruby.over(objects)
    end

    it "compares Symbols" do
      expect do |x|
        case x
        when :north, :south then :vertical
        when :east, :west then :horizontal
        end
      end.to be_same_as_ruby.over(:north, :south, :east, :west, :up, nil)
    end

    it "stands without a subject" do
      expect do |x|
        case
        when x < 0 then -1
        when x > 10, x == 5 then 1
        else 0
        end
      end.to be_same_as_ruby.over(-5, 0, 5, 20)
    end

    it "evaluates its subject once" do
      expect do |x|
        n = 0
        r = case n += x
            when 100 then 1
            when 200 then 2
            else 3
        end
        n * 10 + r
      end.to be_same_as_ruby.over(100, 200, 300)
    end

    it "asks nothing after the test that holds" do
      expect do |x|
        case x
        when 0 then 0
        when 10 / x then 1
        else 2
        end
      end.to be_same_as_ruby.over(0, 1, 10)
    end

    it "compares with the elements of lists" do
      small = [1, 2]
      expect do |x|
        case x
        when 9, *small, -1 then 1
        when *CaseWhen::MULTIPLES then 2
        when *CaseWhen::LIST then 3
        when *[11, 12] then 4
        else 0
        end
      end.to be_same_as_ruby.over(9, 1, 2, -1, 14, 8, 3, 4, "text", :a, nil, 2.5, 11, 13, :b)
    end

    it "compares with what a splat makes of other values" do
      pairs = { 1 => 2 }
      expect do |x|
        case x
        when *(3..4) then 1
        when *nil then 2
        when *5 then 3
        when *pairs then 4
        when *[] then 5
        else 0
        end
      end.to be_same_as_ruby.over(3, 4, 5, nil, 1, [1, 2])
    end

    it "compares with lists that are made for each element, once for each subject" do
      expect do |list|
        asked = 0
        answer = case asked += 1
                 when *list then :one
                 when *list.map { |x| x - 1 } then :next
                 else :none
        end
        [answer, asked]
      end.to be_same_as_ruby.over([1, 2], [2], [3], [])
    end

    it "asks the elements of lists for their truth where there is no subject" do
      expect do |x|
        tests = [x > 2, nil]
        case
        when *tests then 1
        when *[x < 0, x == 1] then 2
        else 0
        end
      end.to be_same_as_ruby.over(-1, 0, 1, 2, 3)
    end
  end
end
