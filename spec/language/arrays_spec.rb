# frozen_string_literal: true

module Arrays
  class Row
    attr_reader :cells

    def initialize(*cells)
      @cells = cells
    end

    def double
      @cells.each_index { |i| @cells[i] *= 2 }
    end

    def sum
      total = 0
      @cells.each { |c| total += c }
      total
    end

    def fill(value)
      i = 0
      while i < @cells.size
        @cells[i] = value
        i += 1
      end
    end
  end
end

RSpec.describe "Arrays" do
  integers = [5, -7, 0, 12]

  on_every_backend do
    it "are filled with something" do
      expect { |x| [[7, 8].fill(x), [7, 8].fill { |i| i + x }, [7, 8].fill(x, 1), [7, 8].fill(x, 0, 1)] }.to be_same_as_ruby.over(1, 2)
      expect { |x| [x, 8].fill }.to be_same_as_ruby.over(1)
    end

    it "is read by index, from either end, and nil outside" do
      expect { |i| integers[i] }.to be_same_as_ruby.over(0, 3, 4, -1, -4, -5, Values::MAX, Values::MIN)
      expect { |i| integers.at(i).nil? ? 0 : integers.at(i) + 1 }.to be_same_as_ruby.over(0, 3, 4, -1)
    end

    it "knows its size, first and last" do
      empty = []
      expect { |x| integers.size + integers.length * 10 + integers.first * 100 + integers.last * 1000 + x }.to be_same_as_ruby.over(1)
      expect { |x| x + (integers.empty? ? 1 : 2) + (empty.empty? ? 10 : 20) + empty.size }.to be_same_as_ruby.over(1)
      expect { |x| x > 1 ? empty.first : empty.last }.to be_same_as_ruby.over(1, 2)
      expect { |x| empty[x] }.to be_same_as_ruby.over(0, -1)
    end

    it "is iterated" do
      expect do |x|
        sum = 0
        integers.each { |v| sum += v * x }
        integers.each_with_index { |v, i| sum += v * i }
        integers.each_index { |i| sum += i }
        integers.reverse_each { |v| sum = sum * 3 + v }
        sum
      end.to be_same_as_ruby.over(0, 1, -3)
    end

    it "is left by break" do
      expect { |x| integers.each_with_index { |v, i| break i if v < x; break -1 if i == 3 } }.to be_same_as_ruby.over(-100, 0, 6)
    end

    it "holds values of several types" do
      mixed = [1, 2.5, nil, :a, true, false]
      expect { |i| mixed[i] }.to be_same_as_ruby.over(0..6)
      expect do |x|
        n = 0
        mixed.each { |v| n += v.is_a?(Numeric) ? 10 : v ? 1 : 100 }
        n + x
      end.to be_same_as_ruby.over(0)
    end

    it "holds arrays" do
      grid = [[1, 2, 3], [4, 5], []]
      expect { |i| grid[i].size * 100 + (grid[i][1] || 0) }.to be_same_as_ruby.over(0, 1, 2)
      expect do |x|
        sum = 0
        grid.each { |row| row.each { |v| sum += v * x } }
        sum
      end.to be_same_as_ruby.over(0, 2)
    end

    it "is written through an object's own" do
      expect do |run|
        rows = [Arrays::Row.new(1, 2, 3), Arrays::Row.new, Arrays::Row.new(-5)]
        run.peach(rows, 2) { |row| row.double }
        run.pmap(rows) { |row| row.sum }
      end.to be_same_as_ruby
    end

    it "may get elements of another type" do
      expect do |run|
        rows = [Arrays::Row.new(1, 2, 3), Arrays::Row.new(4)]
        run.peach(rows) { |row| row.fill(0.5) }
        run.peach(rows) { |row| row.fill(nil) }
        rows
      end.to be_same_as_ruby
    end

    it "is written from the end, and not before its start" do
      expect do |run|
        rows = [Arrays::Row.new(1, 2, 3), Arrays::Row.new(4)]
        run.peach(rows) { |row| row.cells[-1] = 9 }
        run.peach(rows) { |row| row.cells[-2] = 9 }
      end.to be_same_as_ruby
    end

    it "cannot grow" do
      rows = [Arrays::Row.new(1, 2, 3)]
      expect { rows.peach(backend:) { |row| row.cells[3] = 9 } }.to raise_error(StandardError)
      expect(rows.first.cells).to eq([1, 2, 3])
    end

    it "may be frozen" do
      expect do |run|
        rows = [Arrays::Row.new(1, 2), Arrays::Row.new(3)]
        rows[1].cells.freeze
        run.peach(rows) { |row| row.fill(5) }
      end.to be_same_as_ruby
    end

    it "knows identity" do
      rows = [Arrays::Row.new(1), Arrays::Row.new(1)]
      cells = rows[0].cells
      expect { |row| row.cells.equal?(cells) }.to be_same_as_ruby.over(rows)
    end

    it "is given back as the very array" do
      rows = [Arrays::Row.new(1), Arrays::Row.new(2, 3)]
      expect(rows.pmap(backend:) { |row| row.cells }).to match([equal(rows[0].cells), equal(rows[1].cells)])
    end

    it "raises IndexError for a wrong index and TypeError for no index" do
      expect { |x| integers[x] }.to be_same_as_ruby.over(1, nil)
    end

    it "asks nothing of one element for uniq, and checks what dig, fill and flatten are given" do
      expect { |x| n = 0; [x.uniq { |y| n += 1; y }, n] }.to be_same_as_ruby.over([1], [1, 1], [])
      expect { |x| x.dig(1, 0) }.to be_same_as_ruby.over([1, [2]], [1, nil], [1], [1, []])
      expect { |x| x.dig(1, 0) }.to be_same_as_ruby.over([1, 2], [1, 2, 3])
      expect { |x| x.dig(0, 0) }.to be_same_as_ruby.over(["ab"])
      expect { |x| x.dig(0..1) }.to be_same_as_ruby.over([1, 2])
      expect { |x| x.dup.fill(0, -1) }.to be_same_as_ruby.over([], [1], [1, 2])
      expect { |x| x.flatten("b") }.to be_same_as_ruby.over([1, [2]])
      expect { |x| x.flatten(nil) }.to be_same_as_ruby.over([1, [2]])
    end

    it "is assigned to in parts, which become longer or shorter in the variable that alone holds it" do
      list = [10, 11, 12, 13, 14]
      expect { |x| a = list.dup; a[1..2] = [8, 9]; a[x, 1] = [x]; [a, (a[0, 2] = [1, 2])] }.to be_same_as_ruby.over(0, 3, -1)
      expect { |x| a = list.dup; a[x, 2] = [7, 8, 9]; b = list.dup; b[x..] = [1]; c = list.dup; c[..x] = []; d = list.dup; d[x...4] = 5; [a, b, c, d] }
        .to be_same_as_ruby.over(0, 2, 4, 5, 7, -2)
      expect { |x| a = list.dup; a[0..x] = nil; b = []; 3.times { |i| b[b.size, 0] = [i, x] }; c = list.dup; c[1.9..2.2] = [[x], 1.5]; [a, b, c] }.to be_same_as_ruby.over(0, 3)
      expect { |x| a = list.dup; a[x, 1] = [1]; a }.to be_same_as_ruby.over(0, -6)
      expect { |x| a = list.dup; a[0, x] = [1]; a }.to be_same_as_ruby.over(0, -1)
      expect { |x| a = list.dup; a[x..2] = [1]; a }.to be_same_as_ruby.over(0, -6)
      expect { |x| a = list.dup; a[x, 2] = [1]; a }.to be_same_as_ruby.over(nil)
      expect { |x| a = list.dup; begin; a[0, 1] = [1, 1 / x]; rescue ZeroDivisionError; a << 5; end; a }.to be_same_as_ruby.over(0, 1)
      expect { |x| a = list.dup; (a[0..1], b), c = [[x, x], 7], 8; [a, b, c] }.to be_same_as_ruby.over(1)
    end

    it "made without a length, or of an Array, do not run the block" do
      expect { |x| [Array.new { |i| i + x }, Array.new(x) { |i| i + x }] }.to be_same_as_ruby.over(2)
      expect { |x| [Array.new([x, 2]) { |i| i + x }] }.to be_same_as_ruby.over(2)
    end

    it "made with a block take no other value, and at most two arguments" do
      verbose, $VERBOSE = $VERBOSE, nil
      expect { |x| Array.new(x, 7) { |i| i + x } }.to be_same_as_ruby.over(2)
      expect { |x| Array.new([x], 7) { |i| i + x } }.to be_same_as_ruby.over(2)
      expect { |x| Array.new(x, 7, 8) { |i| i + x } }.to be_same_as_ruby.over(2)
    ensure
      $VERBOSE = verbose
    end

    it "keeps its length where others may hold it" do
      expect([[1, 2, 3], [4, 5, 6]]).to each_same_as_ruby { |a| a[0..1] = [8, 9]; a[2, 1] = a[0, 1] }
      expect { |x| a = [x, 2, 3]; b = a; a[1, 2] = [8, 9]; c = [1, 2, 3]; c.each { |y| c[0, 1] = [y] }; [a, b, c] }.to be_same_as_ruby.over(1)
      expect { |a| a[0, 1] = [3]; a }.to be_same_as_ruby.over([1, 2].freeze)
      expect { |a| a[0, 0] = []; a }.to be_same_as_ruby.over([1, 2].freeze)
      lists = [[1, 2, 3]]
      expect { lists.peach(backend: backend) { |a| a[0..1] = [8] } }.to raise_error(Ikra::CompileError, /changes the length of an array that others may hold/)
      expect { [1].pmap(backend: backend) { |x| begin; a = [x]; b = a; a[0, 0] = [1]; b; rescue StandardError; 0; end } }.to raise_error(Ikra::CompileError, /changes the length/)
      expect(lists).to eq([[1, 2, 3]])
    end
  end
end
