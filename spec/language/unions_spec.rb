# frozen_string_literal: true

module Unions
  class Thing
    attr_accessor :value, :other

    def initialize(value = nil, other = nil)
      @value = value
      @other = other
    end

    def double = @value ? @value * 2 : nil
    def maybe = @other&.maybe || @value
    def default = @value ||= 7
    def same(x) = x
  end

  class Special < Thing
    def double = :special
  end

  # Forty classes with the same methods, whose results are of forty kinds.
  40.times { |i| class_eval("class Many#{i}; attr_accessor :next; def number = #{i}; end", __FILE__, __LINE__) }
  MANY = Array.new(40) { |i| const_get("Many#{i}") }

  class Size
    include Comparable
    attr_reader :n

    def initialize(n) = @n = n
    def <=>(other) = other.is_a?(Size) ? n <=> other.n : nil
  end
end

RSpec.describe "Unions" do
  thing = ->(*args) { Unions::Thing.new(*args) }

  on_every_backend do
    it "are results of any kinds, existing arrays and objects included" do
      expect do |run|
        array = [1, 2, [3]]
        object = thing[1]
        run.pmap((0..9).to_a) do |i|
          case i
          when 0 then 1
          when 1 then nil
          when 2 then 2.5
          when 3 then :a
          when 4 then object
          when 5 then true
          when 6 then false
          when 7 then array
          when 8 then Unions::Thing
          else array[2]
          end
        end
      end.to be_same_as_ruby
    end

    it "are elements, and what is asked of them" do
      values = [1, -2.5, nil, true, false, :a, [1, 2], [], thing[3], Unions::Special.new(4), Unions::Thing]
      expect { |x| x.nil? ? 0 : x.is_a?(Integer) ? x + 1 : x.is_a?(Unions::Thing) ? x.double : x }.to be_same_as_ruby.over(*values)
      expect { |x| x ? x.itself : :falsy }.to be_same_as_ruby.over(*values)
      expect { |x| x.class }.to be_same_as_ruby.over(1, -2.5, nil, true, false, :a, thing[3], Unions::Special.new(4))
      expect { |x| x.frozen? }.to be_same_as_ruby.over(1, -2.5, nil, true, false, :a)
      expect { |x| x.respond_to?(:double) ? 1 : 2 }.to be_same_as_ruby.over(*values)
    end

    it "are in ivars that are written" do
      expect do |run|
        things = [thing[1], thing[nil], thing[2.5], thing[:a], thing[[1]], Unions::Special.new(5)]
        run.peach(things, 3) do |t|
          case t.value
          when nil then t.value = 0
          when Integer then t.value = 0.5
          when Float then t.value = true
          when Symbol then t.value = t
          else t.other = t.value; t.value = false
          end
        end
        things
      end.to be_same_as_ruby
    end

    it "are elements of arrays that are written" do
      expect do |run|
        rows = [[1, nil, 2.5, :a], [nil, nil], [true, thing[1], 3]]
        run.peach(rows, 2) do |row|
          row.each_with_index { |v, i| row[i] = v.nil? ? i : v.is_a?(Numeric) ? nil : v == true ? 2.5 : v }
        end
        rows
      end.to be_same_as_ruby
    end

    it "go through &. chains" do
      chain = thing[1, thing[2, thing[nil, thing[4]]]]
      expect { |t| t&.other&.other&.value }.to be_same_as_ruby.over(chain, chain.other, nil, thing[5])
      expect { |t| t&.other&.double&.+(1) }.to be_same_as_ruby.over(chain, nil, thing[5], thing[5, thing[nil]])
      expect { |t| t&.maybe }.to be_same_as_ruby.over(chain, nil, thing[5], thing[nil])
      expect { |t| (t&.value || 3) + 1 }.to be_same_as_ruby.over(chain, nil, thing[nil], thing[2.5])
    end

    it "are assigned by ||= and &&=" do
      expect do |x|
        y = x > 1 ? x : nil
        y ||= 2.5
        z = nil unless x > 2
        z ||= :none
        w = x.odd? && 3
        w &&= w + 1
        x == 5 ? z : w || y
      end.to be_same_as_ruby.over(0, 1, 2, 3, 4, 5)
      expect do |run|
        things = [thing[nil], thing[false], thing[3], thing[nil, 4]]
        rows = [[nil], [1]]
        run.peach(things) { |t| t.default; t.other ||= t.value; t.value &&= t.value + 1 }
        run.peach(rows) { |row| row[0] ||= 5; row[0] &&= row[0] * 2 }
        [things, rows]
      end.to be_same_as_ruby
    end

    it "are compared across kinds" do
      values = [1, 1.0, 2**53, nil, true, false, :a, :b, [1], [1.0], [[1], nil], Unions::Thing, thing[1], Unions::Size.new(1), Unions::Size.new(1), Float::NAN]
      others = [1, 1.0, nil, true, :a, [1], [[1.0], nil], Unions::Thing, values[12], values[13], (1.0..2.0)]
      others.each do |other|
        expect { |x| (x == other ? 1 : 0) + (x != other ? 10 : 0) + (other == x ? 100 : 0) + (x.eql?(other) ? 1000 : 0) }.to be_same_as_ruby.over(*values)
      end
      expect { |x| (x.equal?(values[12]) ? 1 : 0) + (x.equal?(nil) ? 10 : 0) + (x.equal?(:a) ? 100 : 0) }.to be_same_as_ruby.over(1, nil, true, :a, values[12], thing[1], [1], values[13])
      expect { |x| x <=> 1 }.to be_same_as_ruby.over(1, 0.5, 2, nil, true, thing[1], [1], Float::NAN)
      expect { |x| nil <=> x }.to be_same_as_ruby.over(1, nil, :a)
      expect do |x|
        case x
        when 1 then :one
        when nil then :nil
        when :a then :sym
        when 2..3 then :range
        when Float then :float
        when Array then :array
        else :other
        end
      end.to be_same_as_ruby.over(1, nil, :a, 2.5, 2, 7.5, [1], [2], true, thing[1])
    end

    it "raise where nil meets arithmetic" do
      x = [1, nil, 2.5, :a, true, thing[1]]
      expect { |i| x[i] + 1 }.to be_same_as_ruby.over(0, 1, 2, 3, 4, 5, 6)
      expect { |i| 1 + x[i] }.to be_same_as_ruby.over(0, 1, 2, 3, 4, 5)
      expect { |i| x[i] < 2 }.to be_same_as_ruby.over(0, 1, 2, 4, 5)
      expect { |i| 2.0 * x[i] }.to be_same_as_ruby.over(0, 1, 2, 3)
      expect { |i| x[i].value }.to be_same_as_ruby.over(0, 1, 5)
      expect { |i| -x[i] }.to be_same_as_ruby.over(0, 1, 2)
      expect { |i| x[i][0] }.to be_same_as_ruby.over(0, 1, 4)
    end

    it "raise CompileError only where what kernels lack is reached" do
      x = [1, nil, 2.5, :a, thing[1], [1]]
      sizes = ["abc", [1], :abc, nil]
      expect { |i| sizes[i].size + 1 }.to be_same_as_ruby.over(0, 1, 3)
      expect { |i| x[i] == 1 ? 1 : x[i] < 2 }.to be_same_as_ruby.over(0, 1, 2, 4)
      expect { |i| sizes[i].size }.to be_same_as_ruby.over(0, 1, 2, 3)
      expect { |i| x[i] < 2 }.to be_same_as_ruby.over(0, 1, 2, 3, 4)
      expect { [0, 2, 3].pmap(backend: backend) { |i| sizes[i].swapcase } }.to raise_error(Ikra::CompileError, /kernels do not know Symbol#swapcase.*sizes\[i\]/m) { |e| expect(e.ikra.index).to eq 1 }
    end

    it "are arguments and results of methods" do
      t = thing[1]
      values = [1, nil, 2.5, :a, t, true, [1]]
      expect { |x| t.same(x) }.to be_same_as_ruby.over(*values)
      expect { |x| t.same(t.same(x) ? x : t.same(nil)) }.to be_same_as_ruby.over(*values)
    end

    it "may be of forty classes" do
      expect do |run|
        many = Unions::MANY.map(&:new)
        many.each_with_index { |m, i| m.next = many[(i * 7 + 3) % 40] if i % 3 > 0 }
        run.pmap(many) { |m| m.next ? m.next.number * 100 + m.number : m }
      end.to be_same_as_ruby
    end
  end
end
