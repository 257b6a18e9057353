# frozen_string_literal: true

module Ranges
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
      [0].pmap { |x| x } # reads this file, which takes long under stress
      GC.stress = true
      found = [1..2, 0.5..1e300, 3..].pmap { |r| [r, r.begin..9, [r.end]] }
      GC.stress = false
      expect(found).to eq([[1..2, 1..9, [2]], [0.5..1e300, 0.5..9, [1e300]], [3.., 3..9, [nil]]])
    ensure
      GC.stress = false
    end

    it "compare with each other, as themselves or nothing" do
      expect { |x| [x <=> (0..3), x <=> 1] }.to be_same_as_ruby.over(0..3, 1..2, 0...3, 0.0..3.0, 0..)
      expect { |x| [x..3] <=> [0..3] }.to be_same_as_ruby.over(0, 1)
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
  end
end
