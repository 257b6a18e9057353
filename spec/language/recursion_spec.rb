# frozen_string_literal: true

module Recursion
  class << self
    def factorial(n) = n < 2 ? 1 : n * factorial(n - 1)
    def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
    def even_steps?(n) = n.zero? ? true : odd_steps?(n - 1)
    def odd_steps?(n) = n.zero? ? false : even_steps?(n - 1)

    def ackermann(m, n)
      return n + 1 if m.zero?
      return ackermann(m - 1, 1) if n.zero?

      ackermann(m - 1, ackermann(m, n - 1))
    end

    def widening(n) = n.zero? ? 0 : n > 3 ? widening(n - 1) + 0.5 : widening(n - 1)
    def forever(n) = forever(n + 1)
    def grow(x, n) = n.zero? ? x : grow([x], n - 1)
    def grow_by_turns(x, n) = n.zero? ? x : turn([x, x].map { |y| [y] }, n - 1)
    def turn(x, n) = grow_by_turns(x, n)
  end

  class Tree
    attr_reader :left, :right

    def initialize(value, left = nil, right = nil)
      @value = value
      @left = left
      @right = right
    end

    def sum
      @value + (@left ? @left.sum : 0) + (@right ? @right.sum : 0)
    end

    def depth
      [@left&.depth || 0, @right&.depth || 0].max + 1
    end
  end
end

RSpec.describe "Recursion" do
  on_every_backend do
    it "calls itself" do
      expect { |n| Recursion.factorial(n) }.to be_same_as_ruby.over(0, 1, 5, 20, 21, -1)
      expect { |n| Recursion.fib(n) }.to be_same_as_ruby.over(0, 1, 10, 15)
      expect { |n| Recursion.ackermann(2, n) }.to be_same_as_ruby.over(0, 1, 4)
    end

    it "calls itself through another" do
      expect { |n| Recursion.even_steps?(n) }.to be_same_as_ruby.over(0, 1, 50, 51)
    end

    it "gives values of several types" do
      expect { |n| Recursion.widening(n) }.to be_same_as_ruby.over(0, 3, 6)
    end

    it "walks trees" do
      leaf = Recursion::Tree.new(1)
      tree = Recursion::Tree.new(10, Recursion::Tree.new(5, leaf), leaf)
      expect { |t| t.sum * 100 + t.depth }.to be_same_as_ruby.over(leaf, tree)
    end

    it "does not compile ever other types without end" do
      expect { [1].pmap(backend:) { |n| Recursion.grow(n, n); n } }.to raise_error(Ikra::CompileError, /Recursion.grow calls itself with arguments of ever other types/)
      expect { [1].pmap(backend:) { |n| Recursion.grow_by_turns(n, n); n } }.to raise_error(Ikra::CompileError, /calls itself with arguments of ever other types/)
    end

    it "ends in SystemStackError where it does not end" do
      expect { [1].pmap(backend:) { |n| n > 0 ? Recursion.forever(n) : 1 } }.to raise_error(SystemStackError, "stack level too deep") do |error|
        expect(error.ikra.index).to eq(0)
      end
    end
  end
end
