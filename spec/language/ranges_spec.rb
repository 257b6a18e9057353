# frozen_string_literal: true

module Ranges
  Three = Struct.new(:a, :b, :c)

  # Has the methods by which Ruby's C code knows a Range.
  class Like
    include Enumerable

    attr_reader :begin, :end

    def initialize(first, last) = (@begin, @end = first, last)
    def exclude_end? = false

    def each
      yield 7
      yield 8
      self
    end
  end

  # Has an order among numbers, on its own side of `<=>`.
  class Weight
    def initialize(grams) = @grams = grams
    def <=>(other) = @grams <=> other
  end

  class Span
    attr_accessor :range, :last

    def initialize(range) = @range = range
  end

  Limits = Struct.new(:low, :high)
  WHOLE = (0..10)
end

RSpec.describe "Ranges" do
  integers = [1..3, 1...3, 0..-1, 5...5, -(2**62)..(2**62), 0..2**63 - 1]
  mixed = [1..3, 1.5..2.5, -0.0..0.0, 0.0...Float::INFINITY, 2..2.5, 0.5...1, 7.., nil..2, nil...2.0, nil, 4]

  on_every_backend do
    it "of an Integer and a Float are what their iterators give" do
      expect { |x| [(0...2.5).each { |v| v }, (x..2.5).step(1) { |v| v }, (0..x + 0.5).each_slice(2) { |v| v }, (x / 2.0..x).step(0.5) { |v| v }] }
        .to be_same_as_ruby.over(1, 4)
      expect { |x| (x..-0.0).reverse_each { |v| v } }.to be_same_as_ruby.over(1, 4)
      # Ruby 3.4 has other words for the same TypeError
      expect { |x| (x..3).step(:a).to_a }.to be_same_as_ruby.over(1) if RUBY_VERSION < "3.4"
    end

    # Ruby 3.1.2 has none in 3..3, whatever the count is.
    it "of one element have the running Ruby's last elements" do
      expect { |x| [(x..3).last(1), (x..3).last(2), (x...4).last(2), (x..-x).last(3), (x..3).first(2), (x..3).max(2), (x..3).last] }
        .to be_same_as_ruby.over(3, 2, 4, 0, -3)
      expect { |x| [(x..x).last(0), (x...x).last(1), (x...x + 1).last(x), (x..x).min(2), (x..x).to_a.last(2)] }.to be_same_as_ruby.over(0, 1, 5)
      expect { |n| (3..3).last(n) }.to be_same_as_ruby.over(0, 1, 9, 1.5)
      # where there is one, a bad count raises
      [-1, nil].each { |n| expect { |x| (x..3).last(n) }.to be_same_as_ruby.over(3) }
    end

    it "are elements, and come back" do
      expect { |r| [r, r.begin, r.end, r.exclude_end?, r.include?(2), r === 2.5, r.first, r.last] }.to be_same_as_ruby.over(*integers)
      expect { |r| r }.to be_same_as_ruby.over(*mixed)
      expect { |r| r.is_a?(Range) ? [r.begin, r.end, r.cover?(1), r === 2.25, r == (1..3), r != (1.5..2.5), r.eql?(1..3)] : r }
        .to be_same_as_ruby.over(*mixed)
    end

    it "are in variables beside nil and other kinds" do
      expect do |x|
        r = x > 2 ? (1..x) : nil
        other = x.odd? ? (x..x + 1) : x * 0.5
        total = 0
        r&.each { |i| total += i }
        [total, r, other, r.nil? ? 0 : r.sum, r == other, (other.is_a?(Range) ? other.to_a : other)]
      end.to be_same_as_ruby.over(1, 2, 3, 4, -1)
    end

    it "are in instance variables, Structs and arrays, read and written" do
      expect do |run|
        spans = [1..3, 2.5..4.0, nil].map { |range| Ranges::Span.new(range) }
        run.peach(spans, 2) do |span|
          range = span.range
          span.last = range
          span.range = range ? (range.begin + 1..range.end + 1) : (0..0)
        end
        spans.map { |span| [span.range, span.last] }
      end.to be_same_as_ruby
      expect { |x| Ranges::Limits.new(x..x + 2, [0..x, nil]) }.to be_same_as_ruby.over(1, 2.5)
      rows = [[0..1, 2..3], [4..4]]
      expect { |i| rows[i].map { |r| r.size }.sum + rows[0][i].begin }.to be_same_as_ruby.over(0, 1)
    end

    it "are captured, constants, and assigned to captured variables" do
      whole = 2..4
      parts = 0.5...1.5
      open = (3..)
      expect { |x| [whole.include?(x), parts.include?(x), open.include?(x), Ranges::WHOLE.sum + x, open, parts] }.to be_same_as_ruby.over(1, 3, 0.75)
      expect do |run|
        last = nil
        run.peach([1, 2, 3]) { |x| last = (x..x * 2) }
        last
      end.to be_same_as_ruby
    end

    it "answer like Ruby's where the ends differ in kind" do
      expect { |x| [(x..2.5).include?(2), (1...x).cover?(1), (x..).first, (..x) === 0, (x...)] }.to be_same_as_ruby.over(1, 2, -5)
      expect { |x| (1..x).include?(1) }.to be_same_as_ruby.over(2.5, 0.5, Float::NAN)
      expect { |x| (x..2.0).include?(1) }.to be_same_as_ruby.over(1.5, Float::NAN)
    end

    it "without an end are walked until the block leaves" do
      expect { |x| (x..).each { |i| break i if i * i > 50 } }.to be_same_as_ruby.over(0, 9, -20)
      expect { |x| (x..).first(3) }.to be_same_as_ruby.over(0, -2)
    end

    it "are captured, constants, and elements or in variables of objects at once" do
      captured = 2..4
      expect { |r| [r == captured, r == Ranges::WHOLE, captured.include?(3), r] }.to be_same_as_ruby.over(captured, Ranges::WHOLE, 1..2, captured)
      span = Ranges::Span.new(Ranges::WHOLE)
      expect { |r| [span.range == r, Ranges::WHOLE.sum] }.to be_same_as_ruby.over(Ranges::WHOLE, 1..2)
    end

    it "equal no number" do
      five = 5
      expect { |r| [5 == r, 5.0 == r, 5 != r, five == r, five === r, (case r when 5 then 1 else 2 end)] }.to be_same_as_ruby.over(1..3, 5..5, 1.0..5.0)
    end

    it "come back once where one is in several places" do
      first, second = [1].pmap do |x|
        r = x > 0 ? (1..x) : nil
        [r, r]
      end.first
      expect(first).to eq(1..1)
      expect(second).to equal(first)
    end

    it "survive the garbage collector" do
      found = nil
      2.times do |time|
        # The first call compiles. Under stress that takes minutes in a process with many objects.
        GC.stress = time == 1
        found = [1..2, 0.5..1e300, 3..].pmap { |r| [r, r.begin..9, [r.end]] }
      end
      GC.stress = false
      expect(found).to eq([[1..2, 1..9, [2]], [0.5..1e300, 0.5..9, [1e300]], [3.., 3..9, [nil]]])
    ensure
      GC.stress = false
    end

    it "compare with each other, as themselves or nothing" do
      expect { |x| [x <=> (0..3), x <=> 1] }.to be_same_as_ruby.over(0..3, 1..2, 0...3, 0.0..3.0, 0..)
      expect { |x| [x..3] <=> [0..3] }.to be_same_as_ruby.over(0, 1)
      expect { |x| [(0..3) <=> x, (0.0..3.0) <=> x, (0..3).eql?(x)] }.to be_same_as_ruby.over(0..3, 1..2, 0...3, 0.0..3.0, 0.., nil, 3, :a)
      expect { |x| x.sort }.to be_same_as_ruby.over([0..3, 1..2], [0..3])
      expect { |x| [x].fetch(0..x) }.to be_same_as_ruby.over(1)
    end

    it "begin where their variable was before their end assigned it" do
      expect { |x| v = x; (v..(v += 1)) }.to be_same_as_ruby.over(1, 5)
      expect { |x| v = x; f = -> { v += 1 }; (v..f.()) }.to be_same_as_ruby.over(1, 5)
    end

    it "step by 1 unless told otherwise" do
      expect { |x| [x.step.to_a, (x.begin..5).step.to_a] }.to be_same_as_ruby.over(0..3, 2...9, 3..1)
      expect { |x| n = 0; x.step { |i| n += i }; n }.to be_same_as_ruby.over(0..3, 2...9, 3..1)
    end

    it "cover other Ranges" do
      expect do |r|
        [(0..10).cover?(r), (0...10).cover?(r), (0.0..10.0).cover?(r), (0..).cover?(r), (..10).cover?(r), (0...).cover?(r), (3..1).cover?(r),
         (0..10.5).cover?(r), (0..10).include?(r), (0..10) === r]
      end.to be_same_as_ruby.over(*integers, 3..7, 3...11, 3...10, 7..3, 3.5..9.5, 2.5...11, 2...10.5, 3.., nil..3, nil...10, 5, 4.5, nil)
      expect { |r| [r.cover?(r), r.cover?(2..3), r.cover?(2...4), r.cover?(1.5..2.0)] }.to be_same_as_ruby.over(1..3, 1...3, 1.5..2.5, 2..2.5, 0.5...4, 2.., nil..3, nil...4)
    end

    it "without a beginning ask their argument, and an argument that is no number is not in others" do
      weights = [Ranges::Weight.new(2), Ranges::Weight.new(3), Ranges::Weight.new(4), 2.5, nil, "a", :a, [1], 1..2]
      expect { |x| [(..3).cover?(x), (...3) === x, (..3.5).include?(x)] }.to be_same_as_ruby.over(*weights[..2])
      expect { |x| [(..3) === x, (...3) === x, (1..) === x, (nil..nil) === x, (0..9) === x] }.to be_same_as_ruby.over(*weights)
    end

    it "look at themselves before their arguments" do
      [1.., 1.0.., 1..3, 1..3.5, 1.5..3, 1.5..3.5, ...2, nil..nil, 1.5...3.5].each do |range|
        expect { |x| range.min(x, 2) { |a, b| a <=> b } }.to be_same_as_ruby.over(1)
        expect { |x| range.max(x, 2) { |a, b| a <=> b } }.to be_same_as_ruby.over(1)
        next if [Integer, Float].any? { |number| number === range.begin && number === range.end }

        expect { |x| range.min(x, 2) }.to be_same_as_ruby.over(1)
        expect { |x| range.max(x, 2) }.to be_same_as_ruby.over(1)
      end
      expect { |x| [(1.5..3).max(x), (1.5..3).max(x) { |a, b| a <=> b }, (1.5..3).min(x) { |a, b| a <=> b }] }.to be_same_as_ruby.over(0)
      expect { |x| (1.5..3).max(x) }.to be_same_as_ruby.over(-1)
      expect { |x| (1.5..3).min(x) }.to be_same_as_ruby.over(0)
      expect { |x| (x..).min(1) }.to be_same_as_ruby.over(1.5)
      expect { |x| (x..nil).minmax }.to be_same_as_ruby.over(nil)
      expect { |x| (x...2).minmax }.to be_same_as_ruby.over(nil)
    end

    it "are not what objects with their methods are, which Ruby takes for them" do
      list = [1, 2, 3, 4]
      like = Ranges::Like.new(1, 2)
      {
        -> { like.sum } => 3, -> { list[like] } => [2, 3], -> { list.values_at(like) } => [2, 3], -> { list.dup.tap { |l| l[like] = 9 } } => [1, 9, 4],
        -> { "hello"[like] } => "el", -> { 5[like] } => 2, -> { 5.clamp(like) } => 2, -> { 5.5.clamp(like) } => 2, -> { Ranges::Three.new(1, 2, 3).values_at(like) } => [2, 3]
      }.each do |block, answer|
        expect(block.call).to eq answer
        expect { [0].pmap(backend: backend) { |_| block.call } }.to raise_error(Ikra::CompileError, /do not take Ranges::Like for a Range/)
      end
      expect { |x| [x.sum { |y| y * 2 }, x.to_a, x.max] }.to be_same_as_ruby.over([like])
    end

    it "of Floats look at arguments before they are iterated" do
      [0, -1, :a, nil, [1]].each do |count|
        expect { |x| (1.5..3.5).max(x) }.to be_same_as_ruby.over(count)
        expect { |x| (1.5..3.5).min(x) }.to be_same_as_ruby.over(count)
      end
      expect { [1].pmap(backend: backend) { |x| (1.5..3.5).zip(x) { |a| a } } }.to raise_error(Ikra::CompileError, /zip with Arrays and Ranges/)
      expect { [1].pmap(backend: backend) { |x| (1.5..3.5).each_cons(x) { |a| a } } }.to raise_error(Ikra::CompileError, /each_cons of a Range that begins with a Float/)
    end

    it "say how many arguments they expect as Ruby does" do
      expect { |x| (1..3.5).count(x, 2) }.to be_same_as_ruby.over(1)
      expect { |x| (1..).first(x, 2) }.to be_same_as_ruby.over(1)
      expect { |x| (1..3).step(x, 2) { |y| y } }.to be_same_as_ruby.over(1)
      expect { |x| (1..x).%() { |y| y } }.to be_same_as_ruby.over(1)
      expect { |x| 1.step(x, 2, 3) { |y| y } }.to be_same_as_ruby.over(1)
      expect { |x| (1..x).end(1, a: 2) }.to be_same_as_ruby.over(2.5)
    end

    it "of two Integers coerce the start of sum, and others add it up" do
      expect { |x| [(1..5).sum(x), (5..1).sum(x), (1..5.5).sum(x), (1..5).sum(x) { |y| y * x }] }.to be_same_as_ruby.over(1, 0.5, -3)
      expect { |x| (5..1).sum(x) }.to be_same_as_ruby.over(nil, :a, [1])
      expect { |x| (1..5).sum(x) }.to be_same_as_ruby.over("1.5", "-2")
      expect { |x| (1..5).sum(Rational(x, 2)) }.to be_same_as_ruby.over(1)
      [nil, :a, [1], true, "1.5x"].each do |start|
        expect { |x| (1..5).sum(x) }.to be_same_as_ruby.over(start)
        expect { |x| (1..5.5).sum(x) }.to be_same_as_ruby.over(start) unless start.is_a?(String)
      end
    end

    it "without any end have nothing to iterate over" do
      expect { |x| (nil..nil).cover?(x) && (nil..nil) === x }.to be_same_as_ruby.over(1, nil, "a", :a, [1])
      expect { |x| (nil..nil).include?(x) }.to be_same_as_ruby.over(1)
      expect { |x| (nil..nil).member?(x) }.to be_same_as_ruby.over(nil)
    end

    it "are searched as Ruby searches them, and arrays" do
      expect { |x| [(1..10).bsearch { 0 }, (1..10).bsearch { |i| x <=> i }, (-5..5).bsearch { |i| i >= x }, (-5...5).bsearch { |i| x - i }, (1..0).bsearch { true }] }
        .to be_same_as_ruby.over(-9, -5, 0, 1, 3, 5, 10, 11, 2.5)
      expect { |r| [r.bsearch { 0 }, r.bsearch { true }, r.bsearch { false }, r.bsearch { nil }, r.bsearch { |i| i >= 2 }] }.to be_same_as_ruby.over(*integers)
      expect { |x| [[1, 2, 3, 4].bsearch { 0 }, [1, 3, 5, 7, 9].bsearch { |i| i >= x }, [1, 3, 5, 7, 9].bsearch_index { |i| x <=> i }] }.to be_same_as_ruby.over(0, 3, 4, 9, 10)
      expect { |x| (1..10).bsearch { x } }.to be_same_as_ruby.over(:a)
      expect { |x| (1..10).bsearch { x } }.to be_same_as_ruby.over(Float::NAN)
      expect { |x| [1, 2].bsearch { [x] } }.to be_same_as_ruby.over(1)
      expect { |x| [1, 2].bsearch_index { x } }.to be_same_as_ruby.over("a")
    end

    it "of Floats are searched by the places of all Floats, as Ruby does" do
      ends = [0.0, 1.0, -1.0, 4.5, -4.5, 1e300, -1e-300, 0.1, 2, -3, Float::INFINITY, -Float::INFINITY]
      [0.0, -4.5, 0.1, -Float::INFINITY].each do |from|
        expect { |to| [(from..to).bsearch { |x| x >= 0.05 }, (from...to).bsearch { |x| x >= 1 }, (from..to).bsearch { |x| 0.3 <=> x }] }.to be_same_as_ruby.over(*ends)
        expect { |to| [(from..to).bsearch { |x| -1.0 - x }, (from..to).bsearch { true }, (from..to).bsearch { false }, (from..to).bsearch { 0 }, (from..to).bsearch { nil }] }
          .to be_same_as_ruby.over(*ends)
      end
      expect { |x| [(0..x).bsearch { |y| y >= 0.2 }, (x..9.5).bsearch { |y| y * y >= 50 }] }.to be_same_as_ruby.over(0.5, 7)
      expect { |n| [(n..).bsearch { |x| x >= 1000 }, (n...).bsearch { |x| x >= n }, (..n).bsearch { |x| x >= -1000 }, (0.5...).bsearch { |x| x >= n }, (..0.5).bsearch { |x| x >= n }] }
        .to be_same_as_ruby.over(1, -5, 100)
      expect { |x| (0.0..x).bsearch { :a } }.to be_same_as_ruby.over(2.0)
      expect { |x| (nil..nil).bsearch { x } }.to be_same_as_ruby.over(1)
    end

    it "of Integers find what the block was true for, whatever else it gives" do
      expect { |x| [(0..x).bsearch { |i| i < 1 ? true : -1 }, (0..x).bsearch { |i| i > 60 ? true : i > 30 ? -1 : 1 }] }.to be_same_as_ruby.over(2, 100)
    end

    it "as places of elements are slices" do
      list = [9, 8, 7, 6]
      expect { |x| [list.values_at(x, 0), list.values_at(1.5), list.values_at] }.to be_same_as_ruby.over(1, -1, 4)
      expect { |x| list.values_at(x) }.to be_same_as_ruby.over(nil)
      expect { |x| [list.values_at(0..x, 3), list.values_at(x..), list.values_at(..x), list.values_at(x...9, -1), list.values_at(3..1)] }.to be_same_as_ruby.over(0, 2, 4, 6, -2)
      expect { |x| list.values_at(1, x..2) }.to be_same_as_ruby.over(-1, -9)
      expect { |x| list.values_at(x...2) }.to be_same_as_ruby.over(0, -9)
      expect { |x| list.values_at(nil, x..2) }.to be_same_as_ruby.over(-9)
      expect { |r| list.values_at(r) }.to be_same_as_ruby.over(0..1, 2..9, 1.2..2.9, -2..-1, 7..8)
      expect { |x| [[].values_at(0..x), [nil, 1.5].values_at(0..x)] }.to be_same_as_ruby.over(0, 3)
      expect { |x| x[1..2, 1] }.to be_same_as_ruby.over("hello")
      expect { |x| x["l", 1] }.to be_same_as_ruby.over("hello")
    end

    it "of bits may be open" do
      open = nil..2
      expect { |x| [x[0..2], x[1...3], x[2..1], x[1, 2], x[-1, 3]] }.to be_same_as_ruby.over(2, -1, 77)
      expect { |x| [x[0..], x[1..], x[-1..], x[-2..], x[..-1], x[...0], x[2...]] }.to be_same_as_ruby.over(2, -1, 77, 0)
      expect { |x| [x[..2], x[...3], x[..0]] }.to be_same_as_ruby.over(8, -8, 0, 2**61)
      expect { |x| x[..70] }.to be_same_as_ruby.over(0, 5, -1)
      expect { |x| x[..2] }.to be_same_as_ruby.over(8, 9)
      expect { [2].pmap(backend: backend) { |x| x[open] } }.to raise_error(Ikra::CompileError, /Ranges of two Integers/)
    end

    it "and steps without a block are no arrays" do
      expect { |x| [1.step(to: Float::INFINITY, by: 42).size, 1.step(10, x).size, 1.step(10, x).to_a, 1.step(10, x).sum, 1.step(by: 2, to: 9).map { |i| i + x }] }
        .to be_same_as_ruby.over(1, 3)
      expect { |x| [(1..3).step(x).to_a, (5..1).step(x).to_a, (5...1).step(x).to_a] }.to be_same_as_ruby.over(1, -1, -2, 2)
      [-> { [1].pmap(backend: backend) { |x| 1.step(9, x)[1] } }, -> { [1].pmap(backend: backend) { |x| 1.step(9, x).class } },
       -> { [1].pmap(backend: backend) { |x| (x..9).step(2).is_a?(Array) } }, -> { [1].pmap(backend: backend) { |x| [x].each_slice(2) == [[x]] } }]
        .each { |call| expect(&call).to raise_error(Ikra::CompileError, /without a block gives an Enumerator/) }
    end

    it "that are empty have no elements for operations" do
      [7...7, 1..0, []].each do |none|
        by = %i[preduce pmin pmax pminmax pscan psort].to_h { |name| [name, none.public_send(name, backend: backend) { |a, b| a <=> b }] }
        expect(by).to eq(preduce: nil, pmin: nil, pmax: nil, pminmax: [nil, nil], pscan: [], psort: [])
        %i[pmin_by pmax_by pminmax_by psort_by pselect preject ppartition pfilter_map pflat_map pcount pall? pany? pnone? pone? pfind pfind_index psum
           puniq pgroup_by pmap].each do |name|
          expect(none.public_send(name, backend: backend) { |x| x }).to eq(none.public_send(name.to_s.delete_prefix("p")) { |x| x }), name.to_s
        end
        expect(none.preduce(5, backend: backend) { |a, b| a + b }).to eq(5)
        expect(none.pmin(2, backend: backend) { |a, b| a <=> b }).to eq([])
      end
    end
  end
end
