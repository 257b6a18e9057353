# frozen_string_literal: true

module Library
  Pair = Struct.new(:left, :right)
  NESTED = { a: [1, [2, 3.5]], 3 => Pair.new([7], nil), nothing: nil }.freeze

  # Compares by one of its parts, so that equal cards can be distinguished.
  class Card
    attr_reader :rank, :name

    def initialize(rank, name)
      @rank = rank
      @name = name
    end

    def <=>(other) = rank <=> other.rank
  end
end

# The less common forms of Ruby's own methods: with a count, with several arguments, with keywords.
RSpec.describe "Methods of Ruby's own in their longer forms" do
  lists = [[], [7], [3, 1, 2, 1, 5, 0, 9, 4, 3], [2, 1.0, 1, 2.0, 1, 0.5, 1.0, 2], [0.0, -0.0, 0, 0.0]]
  ranges = [1..4, 4..1, 1...4, 1...1]
  mixed = [1.5..4.0, 4.0..1.0, 1.0...4.0, 1..2.5, 1...2.5, 1.5...3, 1.5..3, 1.., nil..3, 3..2.5]

  on_every_backend do
    it "find several of the least and the greatest, with Ruby's choice among equals" do
      expect { |l| [l.min(1), l.min(2), l.max(2), l.min(20), l.max(0), l.min(nil), l.max(nil)] }.to be_same_as_ruby.over(*lists)
      expect { |l| [l.min(2) { |a, b| b <=> a }, l.max(3) { |a, b| (a.to_i / 2) - (b.to_i / 2) }] }.to be_same_as_ruby.over(*lists)
      expect { |l| [l.min_by(2) { |x| x.to_i / 2 }, l.max_by(3) { |x| x.to_i / 2 }, l.min_by(nil) { |x| -x }] }.to be_same_as_ruby.over(*lists)
      expect { |l| l.minmax { |a, b| b <=> a } }.to be_same_as_ruby.over(*lists)
      expect { |l| [l.minmax { 1 }, l.minmax { -1 }, l.minmax { 0 }, l.minmax { |a, _| a }] }.to be_same_as_ruby.over([3, 1, 2, 9], [4], [5, 5, 1])
      expect { |n| [3, 1, 2].min(n) }.to be_same_as_ruby.over(-1, 2.5, 2**62, "a", nil)
      expect { |l| l.min(1) }.to be_same_as_ruby.over([3, nil], [1, "a", 2], [[1, 2], [0, 5]])
      expect { |l| l.max(1) { |_, _| nil } }.to be_same_as_ruby.over([3, 1], [1])
      cards = [2, 1, 2, 1, 3].each_with_index.map { |rank, i| Library::Card.new(rank, i) }
      expect { |n| [cards.min(n).map { |c| c.name }, cards.max_by(n) { |c| c.rank }.map { |c| c.name }] }.to be_same_as_ruby.over(1, 2, 4)
      hash = { a: 3, b: 1, c: 2 }
      expect { |n| [hash.min_by(n) { |_, v| v }, hash.max_by(n) { |k, v| k == :a ? 0 : v }] }.to be_same_as_ruby.over(0, 2, nil)
    end

    it "ask Ranges for their ends" do
      expect { |r| [r.min(2), r.max(2), r.last(2), r.first(2), r.minmax, r.max_by(2) { |x| x % 3 }] }.to be_same_as_ruby.over(*ranges)
      expect { |r| [r.min { |a, b| b <=> a }, r.max(2) { |a, b| b <=> a }, r.min(2) { |a, b| b <=> a }] }.to be_same_as_ruby.over(*ranges)
      expect { |r| r.last(-1) }.to be_same_as_ruby.over(*ranges)
      expect { |r| r.first(-1) }.to be_same_as_ruby.over(*ranges)
      expect { |r| r.min }.to be_same_as_ruby.over(*mixed)
      expect { |r| r.max }.to be_same_as_ruby.over(*mixed)
      expect { |r| r.minmax }.to be_same_as_ruby.over(*mixed)
      expect { |r| r.first(2) }.to be_same_as_ruby.over(1.5..4.0, 1..2.5, 1..)
      expect { |r| r.min(2) }.to be_same_as_ruby.over(1.5..4.0, 1..2.5, 1..)
      expect { |r| r.last(2) }.to be_same_as_ruby.over(1.5..4.0, 2.5..3.0)
      expect { |n| (n..).first(n) }.to be_same_as_ruby.over(3, 0, -1)
    end

    it "step through Ranges by Floats" do
      steps = lambda do |x|
        list = []
        (1..3).step(x) { |y| list << y }
        (1...3).step(x) { |y| list << y }
        (1.0..2.0).step(x) { |y| list << y }
        list
      end
      expect { |x| steps.call(x) }.to be_same_as_ruby.over(0.5, 0.3, 1.0, 5.0, 0.0, -0.5, Float::NAN)
      expect { |x| (1..2).step(x) { |y| y } }.to be_same_as_ruby.over(0.5, 0.25)
    end

    it "cut lists into pieces" do
      expect do |l|
        [l.chunk_while { |a, b| b == a + 1 }.to_a, l.slice_when { |a, b| b < a }.map { |piece| piece.sum },
         l.slice_before { |x| x.even? }.to_a, l.slice_after(2..3).to_a, l.chunk { |x| x > 3 ? nil : x.odd? }.to_a]
      end.to be_same_as_ruby.over([], [1], [1, 2, 4, 5, 6, 3, 2, 3, 1])
      expect { |r| [r.slice_when { |a, b| b % 3 == 0 }.to_a, r.chunk_while { |a, _| a.odd? }.first(2), r.slice_before(3).to_a] }.to be_same_as_ruby.over(1..7, 2..1)
      expect do |l|
        sizes = 0
        nothing = l.chunk_while { |a, b| a == b }.each { |piece| sizes = (sizes * 10) + piece.size }
        [nothing, sizes]
      end.to be_same_as_ruby.over([1, 1, 2], [])
    end

    it "go round lists" do
      expect { |n| [[1, 2, 3].cycle.take(n), [].cycle.take(n), (1..2).cycle.first(n), [7].cycle(2).map { |x| x + n }] }.to be_same_as_ruby.over(0, 5, -1)
      expect { |l| [l.cycle.first, l.cycle(2).to_a, l.cycle(-1).to_a, l.cycle { |x| break x }] }.to be_same_as_ruby.over([], [1, 2])
    end

    it "take several arrays" do
      expect do |l|
        [l.product, l.product([3, 4], [5]), l.product([1.5], [nil, :a], [true]), l.product([1], []), l.zip([1], [2, 3], [4], [5.5]),
         l.union, l.union([1, 8], [9]), l.difference, l.difference([1], [2]), l.intersection, l.intersection([2, 1, 1], [1])]
      end.to be_same_as_ruby.over([], [1, 1, 2], [4, 1])
      expect { |r| r.zip([1], [2, 3], [4.5]) }.to be_same_as_ruby.over(1..3)
      expect { |x| [[1, 2].product([3], [x]) { |a, b, c| a + b + c }, [5].zip([1], [2], [3], [4]) { |row| row.sum }] }.to be_same_as_ruby.over(1)
      expect { |x| [1].product([1], x) }.to be_same_as_ruby.over(3, nil, [2])
      expect { |x| [1].union([1], x) }.to be_same_as_ruby.over(3, nil, [2])
    end

    it "dig through several levels" do
      expect { |x| [[x, [2, [3.5, nil]]]].dig(0, 1, 1, 0) }.to be_same_as_ruby.over(1)
      expect { |x| [[x, [2, [3.5, nil]]]].dig(0, 1, 1, 1, 4) }.to be_same_as_ruby.over(1)
      expect { |x| [[x, [2]]].dig(0, 0, 1) }.to be_same_as_ruby.over(1, nil)
      expect { |key| Library::NESTED.dig(key, 1, 1) }.to be_same_as_ruby.over(:a, :nothing, :none)
      expect { |i| Library::NESTED.dig(3, :left, i) }.to be_same_as_ruby.over(0, 1)
      expect { |pair| [pair.dig(:left, :right, 0), pair.dig(0, 1, 0), pair.dig(:none), pair.dig(5), pair.values_at(1, 0)] }
        .to be_same_as_ruby.over(Library::Pair.new(Library::Pair.new(1, [2]), 3))
    end

    it "select by patterns, and find in lists of lists" do
      expect { |l| [l.grep(1..2), l.grep(Integer) { |x| x * 2 }, l.grep_v(Float), l.find(-> { :none }) { |x| x > 8 }] }.to be_same_as_ruby.over(*lists)
      expect { |x| [[[1, 2], [3, 4]].assoc(x), [[1, 2], [3, 4]].rassoc(x + 1), [1, 2].deconstruct] }.to be_same_as_ruby.over(1, 3, 5)
      expect { |n| [[1, 2].repeated_combination(n).to_a, [1, 2].repeated_permutation(n).to_a, [1, 2, 3].combination(n).to_a] }.to be_same_as_ruby.over(-1, 0, 1, 2, 2.5)
    end

    it "round halves up, to even and down" do
      floats = [2.5, -2.5, 3.5, 0.5, -0.5, 0.0, -0.0, 2.675, 1e15, 12.5, 1234.5678, 0.25, -0.35, 5e-324, 1e300, Float::INFINITY, -Float::INFINITY, Float::NAN]
      [:up, :even, :down, nil, "even"].each do |half|
        expect { |x| x.round(2, half: half) }.to be_same_as_ruby.over(*floats)
        expect { |x| x.round(half: half) }.to be_same_as_ruby.over(*floats)
        expect { |x| x.round(-1, half: half) }.to be_same_as_ruby.over(*floats, 25, 35, -25, 15, 5 * 10**18, -5 * 10**18)
        expect { |n| [25.round(n, half: half), -15.round(n, half: half), 0.125.round(n, half: half)] }.to be_same_as_ruby.over(-20, -19, -2, -1, 0, 1, 2, 14)
        expect { |x| [x.round(half: half), x.round(1, half: half), x.round(-1, half: half)] }.to be_same_as_ruby.over(5 / 2r, -5 / 2r, 1 / 4r, 15r, -1 / 3r)
      end
      expect { |n| 2.5.round(n, half: :even) }.to be_same_as_ruby.over(nil, "a", 2**40, 1.5)
      expect { |x| [x.round(1), x.round(-1), x.floor(1), x.ceil(2), x.truncate(1), x.floor(-1)] }.to be_same_as_ruby.over(1 / 3r, -7 / 2r, 25r)
      expect { [2.5].pmap(backend:) { |x| x.round(half: :sideways) } }.to raise_error(Ikra::CompileError, /half: :up, :even, :down and nil/)
      expect { [2.5].pmap(backend:) { |x| x.round(20, half: :even) } }.not_to raise_error
      expect { [1e-12 / 3].pmap(backend:) { |x| x.round(20, half: :even) } }.to raise_error(Ikra::CompileError, /14 digits/)
    end

    it "answer Float#to_r, numerator, denominator, coerce and the parts of real numbers" do
      expect { |x| [x.to_r, x.numerator, x.denominator] }.to be_same_as_ruby.over(0.5, -0.1, 3.0, 1e18, 0.0)
      expect { |x| x.to_r }.to be_same_as_ruby.over(Float::INFINITY, Float::NAN)
      expect { |x| [x.i, x.to_c, x.rect, x.polar, x.coerce(2), x.coerce(2.5)] }.to be_same_as_ruby.over(10, -3, 2.5)
      expect { |x| 10.gcdlcm(x) }.to be_same_as_ruby.over(4, -15, 2.5)
      expect { |x| Integer(x) }.to be_same_as_ruby.over(nil, :a, true, [1])
      expect { |x| Float(x) }.to be_same_as_ruby.over(nil, :a, false, [1])
    end

    it "take numbers apart for Math" do
      floats = [0.5, -0.5, 3, 0.0, -0.0, -1, -2.5, -3.7, 170.5, 1e300, -1e300, 1e-310, 5e-324, Float::INFINITY, Float::NAN]
      # Bit for bit on the CPU; within NVIDIA's bounds on a GPU.
      expect { |x| Math.lgamma(x) }.to be_same_as_ruby.over(*floats) unless backend == :cuda
      expect { |x| Math.lgamma(x)[1] }.to be_same_as_ruby.over(*floats)
      expect { |x| Math.lgamma(x) }.to be_same_as_ruby.over(-Float::INFINITY, nil, "a")
      expect { |x| Math.frexp(x) }.to be_same_as_ruby.over(*floats, -1.75, 2**62, nil)
      expect { |x| Math.ldexp(*[Math.frexp(x)[0], Math.frexp(x)[1]]) }.to be_same_as_ruby.over(*floats)
    end
  end

  on_every_backend do
    it "raise Complexes to powers" do
      numbers = [Complex(1, 2), Complex(0, 3), Complex(-2, 0), Complex(3, 3), Complex(-1.5, 2.0), Complex(0.0, -1.0), Complex(1.5, -0.0), Complex(2, 0.5)]
      floats = numbers.select { |z| z.real.is_a?(Float) && z.imaginary.is_a?(Float) }
      expect { |n| numbers.map { |z| z**n } }.to be_same_as_ruby.over(2, 3, 0, 1, 7, 4 / 2r)
      expect { |n| floats.map { |z| z**n } }.to be_same_as_ruby.over(-1, -2, -5)
      # Methods that use functions of Math are within NVIDIA's bounds on a GPU.
      if backend != :cuda
        expect { |x| numbers.map { |z| z**x } }.to be_same_as_ruby.over(2.5, 0.5, 1 / 3r, -1.0)
        expect { |c| numbers.map { |z| z**c } }.to be_same_as_ruby.over(Complex(0.5, 1), Complex(2, 0), Complex(-1.0, 2.5))
        expect { |x| Complex.polar(2.0, x).rect }.to be_same_as_ruby.over(*(-8..8).map { |i| Math::PI * i / 4 })
      end
      expect { |x| (Complex(1, 2)**x).rect }.to be_same_as_ruby.over(2, nil, :a)
      expect { [Complex(1, 2)].pmap(backend:) { |z| z**-1 } }.to raise_error(Ikra::CompileError, /Complex of Rationals/)
    end
  end

  on_every_backend do
    it "read numbers to any base" do
      texts = ["12", "0b11", " 0x1f", "zz", "017", "0b12_1", "0o7", "0d9", "-0x1F", "08", "", "_1", "1__0"]
      [2, 8, 10, 16, 36, 0].each { |base| expect { |s| s.to_i(base) }.to be_same_as_ruby.over(*texts) }
      expect { |base| "12".to_i(base) }.to be_same_as_ruby.over(1, -2, 37, 3.5, "a", nil)
      expect { |s| [s.hex, s.codepoints] }.to be_same_as_ruby.over(*texts)
      expect { |s| Integer(s) }.to be_same_as_ruby.over(*texts, "  12 ", "12x", "- 5", "0x", "1\0", "9223372036854775807", "-9223372036854775808")
      expect { |s| [Integer(s, 16, exception: false), Integer(s, exception: false)] }.to be_same_as_ruby.over(*texts)
      expect { |x| Integer(x) }.to be_same_as_ruby.over("5", 2.5, 7)
    end

    it "read any Float to the nearest" do
      texts = ["1.2345678901234567890", "1e300", "1e-320", " 1_000.5", "9007199254740993", "9007199254740992.5", "2.2250738585072011e-308", "4.9e-324",
               "2.4703282292062327e-324", "2.4703282292062328e-324", "1.7976931348623157e308", "1.7976931348623159e308", "1e400", "-1e-400", "0e99999",
               "123456789012345678901234567890", "0.000000000000000000000000000001234", "8.5e-1_0", "1e1__0", "0.1e-5x", "0x1A", ""]
      expect { |s| s.to_f }.to be_same_as_ruby.over(*texts)
      strict = ["1.5", "  1.5 ", "1.5x", "1__0", "1_0", "_1", "1_", ".5", "-.5", "1e", "1e+", "1_e5", "-", "1 2", "1\0", "zz"]
      expect { |s| Float(s) }.to be_same_as_ruby.over(*strict)
      expect { |s| Float(s, exception: false) }.to be_same_as_ruby.over(*strict - ["1\0"])
      expect { ["-0x1A"].pmap(backend:) { |s| s.to_f } }.to raise_error(Ikra::CompileError, /hexadecimal/)
      expect { ["1" * 60].pmap(backend:) { |s| s.to_f } }.to raise_error(Ikra::CompileError, /50 digits/)
    end

    it "compare Strings with several beginnings and ends, and slice them" do
      expect { |s| [s.start_with?("b", "a"), s.start_with?, s.end_with?, s.end_with?("q", "c", ""), s.slice(1), s.slice(0, 2), s.slice(1..), s.slice("b")] }
        .to be_same_as_ruby.over("abc", "", "héllo")
      expect { |x| "abc".start_with?("q", x) }.to be_same_as_ruby.over("a", 3, nil)
      expect { |x| "abc".end_with?("c", x) }.to be_same_as_ruby.over("a", 3, nil)
    end

    it "draw from lists by Ikra's generator" do
      draw = lambda do |on|
        Ikra.srand(7)
        (1..200).pmap(backend: on) { |i| [[1, 2, 3].sample, [1, 2, 3, 4].sample(2), (0..i % 6).to_a.shuffle, [5].sample(3), [].sample, [].sample(2), [].shuffle] }
      end
      drawn = draw.call(backend)
      expect(drawn).to eq(draw.call(:reference))
      expect(drawn.map(&:first).tally.values).to all(be > 40)
      expect(drawn.flat_map { |d| d[1] }.tally.values).to all(be > 70)
      expect(drawn.map { |d| d[1].uniq.size }).to all(eq(2))
      expect(drawn.each_with_index.map { |d, i| d[2].sort == (0..(i + 1) % 6).to_a }).to all(be(true))
      expect(drawn.map { |d| d[2] }.select { |l| l.size == 3 }.uniq.size).to eq(6)
      expect(drawn.map { |d| d.drop(3) }.uniq).to eq([[[5], nil, [], []]])
      expect { |n| [1].sample(n) }.to be_same_as_ruby.over(-1, "a", 2.5)
      rows = Array.new(20) { [1, 2, 3] }
      rows.peach(backend:) { |row| row.shuffle! }
      expect(rows.map(&:sort).uniq).to eq([[1, 2, 3]])
      expect(rows.uniq.size).to be > 2
    end
  end

  it "are refused where Ruby gives an Enumerator, also of an empty list" do
    list = []
    [
      -> { [1].pmap { |_| list.cycle } }, -> { [1].pmap { |_| list.each_entry } }, -> { [1].pmap { |_| list.find } },
      -> { [1].pmap { |_| list.each_with_object(1) } }, -> { [1].pmap { |_| [1, 2].chunk_while { |a, b| a == b } } },
      -> { [1].pmap { |_| [1, 2].slice_when { |a, b| a == b }.size } }, -> { [1].pmap { |_| [1, 2].slice_before(1) } }
    ].each { |section| expect(&section).to raise_error(Ikra::CompileError, /Enumerator/) }
  end
end
