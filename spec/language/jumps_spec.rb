# frozen_string_literal: true

module Jumps
  class << self
    def sign(x)
      return -1 if x < 0
      return 0 if x.zero?

      1
    end

    def first_divisor(n)
      2.upto(n) do |d|
        return d if n % d == 0
      end
      nil
    end

    def nested(n)
      loop do
        10.times do |i|
          return i * 100 if i == n
          return if n > 10
        end
        return :none
      end
    end

    def nothing(_x)
      return
    end
  end
end

RSpec.describe "break, next and return" do
  on_every_backend do
    it "ends an element with next" do
      expect do |x|
        next -1 if x < 0
        next if x == 0
        x * 2
      end.to be_same_as_ruby.over(-3, 0, 4)
    end

    it "ends a round of an iterator with next" do
      expect do |x|
        sum = 0
        5.times do |i|
          next if i == x
          next sum += 100 if i == 3
          sum += i
        end
        sum
      end.to be_same_as_ruby.over(0, 3, 9)
    end

    it "leaves an iterator with break" do
      expect do |x|
        r = 5.times do |i|
          break :found if i == x
        end
        r == 5 ? :none : r
      end.to be_same_as_ruby.over(0, 3, 9)
    end

    it "leaves methods with return, from inside of blocks too" do
      expect { |x| Jumps.sign(x) }.to be_same_as_ruby.over(-3, 0, 4, -0.0, 2.5)
      expect { |x| Jumps.first_divisor(x) }.to be_same_as_ruby.over(0, 1, 2, 9, 35, 97)
      expect { |x| Jumps.nested(x) }.to be_same_as_ruby.over(0, 3, 10, 11)
      expect { |x| Jumps.nothing(x) }.to be_same_as_ruby.over(1)
    end

    it "returns from a lambda" do
      block = lambda do |x|
        return -1 if x < 0

        x * 2
      end
      expect([-3, 0, 4].pmap(backend:, &block)).to eq([-1, 0, 8])
    end

    it "leaves the section with break, after what the elements before it did" do
      expect do |run|
        run.pmap([1, 2, 30, 4, 50]) do |x|
          break x * 2 if x > 10
          x
        end
      end.to be_same_as_ruby
    end
  end
end
