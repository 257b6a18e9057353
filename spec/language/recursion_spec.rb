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
    def grow_twice(x, n) = n.zero? ? 0 : grow_twice([x], n - 1) + grow_twice([[x]], n - 1)
    def grow_by_turns(x, n) = n.zero? ? x : turn([x, x].map { |y| [y] }, n - 1)
    def turn(x, n) = grow_by_turns(x, n)
  end

  # Divide and conquer, with arrays that each call makes for the next.
  module Dividing
    class << self
      def total(list) = list.size <= 1 ? list.sum : total(list.take(list.size / 2)) + total(list.drop(list.size / 2))
      def turned(rows, n) = n.zero? ? rows : turned(rows.transpose, n - 1)
      def raised(list, n) = n.zero? ? list : raised(list.map { |m| m.map { |r| r.map { |x| x + 1 } } }, n - 1)
      def orders(list) = list.size <= 1 ? [list] : list.flat_map { |x| orders(list.reject { |y| y == x }).map { |l| [x] + l } }
      def subsets(list) = list.empty? ? [[]] : subsets(list.drop(1)).flat_map { |l| [l, [list[0]] + l] }

      def det(rows)
        return rows[0][0] if rows.size == 1

        sum = 0
        rows.size.times { |j| sum += (j.even? ? 1 : -1) * rows[0][j] * det(rows.drop(1).map { |r| r.take(j) + r.drop(j + 1) }) }
        sum
      end

      def power(rows, n)
        return rows if n == 1

        half = power(rows, n / 2)
        half.map { |r| half.transpose.map { |c| r.zip(c).sum { |x, y| x * y } } }
      end

      def half(list) = list.size <= 1 ? list.size : half(list.take(list.size / 2))
      def down(n, path) = n.zero? ? path : down(n - 1, path + [n])
      def fib(n, last) = n.zero? ? last[0] : fib(n - 1, [last[1], last[0] + last[1]])
      def ways(list, sum) = list.empty? ? (sum.zero? ? 1 : 0) : ways(list.drop(1), sum) + ways(list.drop(1), sum - list[0])

      def quicksort(list)
        return list if list.size <= 1

        first, rest = list[0], list.drop(1)
        quicksort(rest.select { |x| x < first }) + [first] + quicksort(rest.reject { |x| x < first })
      end

      def mergesort(list)
        return list if list.size <= 1

        merged(mergesort(list[0...(list.size / 2)]), mergesort(list[(list.size / 2)..]))
      end

      def merged(left, right)
        out = []
        i = j = 0
        while i < left.size || j < right.size
          if j == right.size || (i < left.size && left[i] <= right[j])
            out << left[i]
            i += 1
          else
            out << right[j]
            j += 1
          end
        end
        out
      end

      def include?(list, x)
        return false if list.empty?

        middle = list.size / 2
        return true if list[middle] == x

        x < list[middle] ? include?(list[0...middle], x) : include?(list[(middle + 1)..], x)
      end

      def fourier(list)
        half = list.size / 2
        return list if half.zero?

        even, odd = fourier((0...half).map { |i| list[2 * i] }), fourier((0...half).map { |i| list[(2 * i) + 1] })
        turned = odd.each_with_index.map { |x, k| x * (k.even? ? 1.0 : -0.5) }
        (0...half).map { |k| even[k] + turned[k] } + (0...half).map { |k| even[k] - turned[k] }
      end

      # Arrays of arrays: rows are the same at each depth.
      def rows(table) = table.size <= 1 ? table[0].sum : rows(table.take(table.size / 2)) + rows(table.drop(table.size / 2))
      # Through another method, with changed arguments.
      def peeled(list) = list.empty? ? 0 : list[0] + unpeeled(list.drop(1))

      def unpeeled(list)
        list[1] = 100 if list.size == 2
        list.empty? ? 0 : peeled(list.map { |x| x * 2 }.drop(1))
      end
    end
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

    it "may make arrays for itself, once or twice over" do
      lists = [[], [7], [3, 1, 2], [9, -8, 7, 6, 5, 5, 4, 3]]
      expect { |l| Recursion::Dividing.total(l) }.to be_same_as_ruby.over(*lists)
      expect { |l| Recursion::Dividing.half(l) }.to be_same_as_ruby.over(*lists)
      expect { |l| [Recursion::Dividing.quicksort(l), Recursion::Dividing.mergesort(l), l] }.to be_same_as_ruby.over(*lists)
      expect { |l| [Recursion::Dividing.include?(l.sort, 5), Recursion::Dividing.include?(l, 6)] }.to be_same_as_ruby.over(*lists)
      expect { |l| [Recursion::Dividing.ways(l, 12), Recursion::Dividing.ways(l, 0)] }.to be_same_as_ruby.over(*lists)
      expect { |l| Recursion::Dividing.peeled(l) }.to be_same_as_ruby.over(*lists)
      expect { |n| [Recursion::Dividing.down(n, []), Recursion::Dividing.down(n, [0, n]), Recursion::Dividing.fib(n, [0, 1])] }.to be_same_as_ruby.over(0, 1, 5, 60)
      expect { |l| Recursion::Dividing.fourier(l) }.to be_same_as_ruby.over([1.0, 2.0, 3.0, 4.0], [0.5, -1.0, 2.5, 1e3, 0.0, -0.0, 7.0, 8.0])
      expect { |l| Recursion::Dividing.rows([l, l.reverse, l + [1]]) }.to be_same_as_ruby.over(*lists)
    end

    it "may make arrays of arrays for itself" do
      rows = [[[2, 0, 1], [1, 3, 2], [1, 1, 1]], [[5]], [[1, 2], [3, 4]]]
      expect { |m| Recursion::Dividing.det(m) }.to be_same_as_ruby.over(*rows, [[2.5, 0.5], [1.0, 3.0]])
      expect { |m| [Recursion::Dividing.turned(m, 3), Recursion::Dividing.raised([m], 2), Recursion::Dividing.power(m, 4)] }.to be_same_as_ruby.over(*rows)
      expect { |l| [Recursion::Dividing.orders(l), Recursion::Dividing.subsets(l)] }.to be_same_as_ruby.over([], [7], [3, 1, 2])
    end

    it "does not compile ever other types without end" do
      expect { [1].pmap(backend:) { |n| Recursion.grow(n, n); n } }.to raise_error(Ikra::CompileError, /Recursion.grow calls itself with arguments of ever other types/)
      expect { [1].pmap(backend:) { |n| Recursion.grow_twice(n, n) } }.to raise_error(Ikra::CompileError, /calls itself with arguments of ever other types/)
      expect { [1].pmap(backend:) { |n| Recursion.grow_by_turns(n, n); n } }.to raise_error(Ikra::CompileError, /calls itself with arguments of ever other types/)
    end

    it "ends in SystemStackError where it does not end" do
      expect { [1].pmap(backend:) { |n| n > 0 ? Recursion.forever(n) : 1 } }.to raise_error(SystemStackError, "stack level too deep") do |error|
        expect(error.ikra.index).to eq(0)
      end
    end
  end
end
