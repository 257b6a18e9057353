# frozen_string_literal: true

require "forwardable"

module Methods
  class Delegating
    extend Forwardable

    def_delegators :@list, :size, :map, :[], :sum
    def_delegator :@list, :at, :pick
    def_delegator "@list.first", :succ, :following
    def initialize(list) = @list = list
  end

  class Vector
    attr_reader :x, :y

    def initialize(x, y)
      @x = x
      @y = y
    end

    def dot(other) = @x * other.x + @y * other.y
    def [](i) = i == 0 ? @x : @y
    def +(other) = dot(other) + 1
    def -@ = -@x
    def ==(other) = other.is_a?(Vector) && x == other.x && y == other.y
    def <=>(other) = x <=> other.x
    def call(n) = n * @x
    def empty? = false
    def set!(v) = @x = v
    def to_i = x.to_i
    def !~(other) = other
    def length_squared
      dot self
    end

    def several(flag)
      flag ? 1 : nil
    end

    protected

    def guarded = 1

    private

    def hidden = 2

    public

    def reveal = hidden + self.hidden + guarded
    def reveal_of(other) = other.guarded
    def steal_from(other) = other.hidden
  end

  class Tools
    SCALE = 3

    def self.scaled(x) = x * SCALE

    class << self
      def twice(x)
        scaled(scaled(x))
      end

      def counter = @counter

      private

      def closed = 1
    end
  end

  module Helpers
    def self.half(x) = x / 2.0

    module_function

    def third(x) = x / 3.0
  end
end

RSpec.describe "Methods" do
  on_every_backend do
    it "calls what def_delegators made" do
      list = Methods::Delegating.new([3, 1, 2])
      expect do |x|
        [list.size, list[x], list.pick(x), list.following, list.map { |y| y * x }, list.sum { |y| y + x }]
      end.to be_same_as_ruby.over(0, 1, -1)
    end

    it "is called on objects, with objects" do
      vectors = [Methods::Vector.new(1, 2), Methods::Vector.new(-3, 0.5)]
      other = Methods::Vector.new(10, 100)
      expect { |v| v.dot(other) + v.length_squared }.to be_same_as_ruby.over(vectors)
    end

    it "may be an operator, or end in ?, ! or =" do
      vectors = [Methods::Vector.new(1, 2), Methods::Vector.new(-3, 5)]
      expect { |v| (v + v) + v[0] * 100 + v[1] * 1000 + -v + (v == v ? 7 : 8) + (v != v ? 70 : 80) + (v.empty? ? 1 : 2) + (v <=> v) + v.(5) }
        .to be_same_as_ruby.over(vectors)
    end

    it "gives values of several types" do
      vectors = [Methods::Vector.new(1, 2)] * 2 + [Methods::Vector.new(0, 0)]
      expect { |v| v.several(v.x == 1) }.to be_same_as_ruby.over(vectors)
    end

    it "may be private or protected" do
      vectors = [Methods::Vector.new(1, 2)]
      expect { |v| v.reveal }.to be_same_as_ruby.over(vectors)
      expect { |v| v.reveal_of(v) }.to be_same_as_ruby.over(vectors)
      expect { |v| v.hidden }.to be_same_as_ruby.over(vectors)
      expect { |v| v.steal_from(v) }.to be_same_as_ruby.over(vectors)
      expect { |v| v.guarded }.to be_same_as_ruby.over(vectors)
    end

    it "may belong to classes and modules" do
      expect { |x| Methods::Tools.scaled(x) + Methods::Tools.twice(x) }.to be_same_as_ruby.over(1, -2.5)
      expect { |x| Methods::Helpers.half(x) + Methods::Helpers.third(x) }.to be_same_as_ruby.over(1, -2.5)
      expect { |x| x > 1 ? Methods::Tools.closed : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Methods::Tools.nowhere : x }.to be_same_as_ruby.over(1, 2)
    end

    it "may be asked of a class that a variable holds" do
      tools = Methods::Tools
      expect { |x| tools.scaled(x) }.to be_same_as_ruby.over(1, 2)
    end
  end
end
