# frozen_string_literal: true

module Rationals
  class Holder
    attr_accessor :r, :last

    def initialize(r)
      @r = r
      @last = []
    end
  end

  class Coercing
    def coerce(other) = [other, 2]
  end

  Pair = Struct.new(:a, :b)
  THIRD = 1/3r
end

RSpec.describe "Rational numbers" do
  some = [0r, 1r, -1r, 1/2r, -1/2r, 2/3r, -7/3r, 22/7r, 5r, 1/1_000_000_007r, -999_999_937/1_000_000_007r]
  floats = [0.0, -0.0, 0.5, -2.5, 1e300, Float::INFINITY, -Float::INFINITY, Float::NAN]
  largest = (2**63) - 1

  on_every_backend do
    it "are added, subtracted, multiplied and compared as Ruby does it" do
      (some + [0, 1, -3, 7] + floats).each do |other|
        expect { |r| [r + other, r - other, r * other, other + r, other - r, other * r, r == other, other == r, r != other, r <=> other, other <=> r] }
          .to be_same_as_ruby.over(*some)
        next if other.is_a?(Float) && other.nan?

        expect { |r| [r < other, r <= other, r > other, r >= other, other < r, other <= r, other > r, other >= r, r.eql?(other), r.between?(other, 2)] }
          .to be_same_as_ruby.over(*some)
      end
    end

    it "are divided as Ruby does it, also by zero" do
      (some + [0, 1, -3, 7] + floats).each do |other|
        expect { |r| [r / other, r.quo(other), r.fdiv(other)] }.to be_same_as_ruby.over(*some)
        expect { |r| [other / r] }.to be_same_as_ruby.over(*some)
        next if other.is_a?(Float) && !(other.abs < 1e9)

        expect { |r| [r.div(other), r % other, r.modulo(other), r.divmod(other), r.remainder(other)] }.to be_same_as_ruby.over(*some)
        expect { |r| [other.div(r), other % r] }.to be_same_as_ruby.over(*some)
        expect { |r| [other.fdiv(r)] }.to be_same_as_ruby.over(*some)
      end
      expect { |r| [7.divmod(r), -7.divmod(r)] }.to be_same_as_ruby.over(*some)
    end

    it "are raised to Integers and Floats" do
      expect { |n| [(2/3r)**n, (-2/3r)**n, 1r**n, (-1r)**n, 3r.pow(n), (2/3r)**n.to_f] }.to be_same_as_ruby.over(0, 1, -1, 2, -3, 5)
      expect { |n| [0r**n] }.to be_same_as_ruby.over(0, 3, -1)
    end

    it "tell what they are and become other numbers" do
      hard = [Rational(largest, largest - 1), Rational(-(2**63), 3), Rational(1, largest), Rational((2**53) + 1, 3), Rational((2**62) + 1, (2**61) - 1)]
      expect { |r| [r.numerator, r.denominator, r.to_f, r.to_i, r.truncate, r.floor, r.ceil, r.round, r.zero?, r.positive?, r.negative?, r.nonzero?, r.integer?, r.finite?, r.infinite?, r.real?] }
        .to be_same_as_ruby.over(*some, *hard, 3/2r, -3/2r, 5/2r, -5/2r)
      expect { |r| [-r, +r, r.abs, r.magnitude, r.to_r] }.to be_same_as_ruby.over(*some)
      expect { |r| [r <=> Rational(3, 2), r <=> hard[0], r <=> hard[4], hard.sort, hard.min, r < hard[2], r == hard[3]] }.to be_same_as_ruby.over(*hard)
    end

    it "are made by Rational(), literals and to_r" do
      expect { |n| [Rational(n), Rational(n, 4), Rational(n, -6), 3r, -1.50r, n / 3r, n.to_r, Rational(Rational(n, 3), 2), Rational(1/2r, 3/4r)] }.to be_same_as_ruby.over(0, 2, -3, 12)
      expect { |n| [Rational(4, n), Rational(1/3r, n)] }.to be_same_as_ruby.over(3, -2, 0)
    end

    it "are in instance variables, Structs, arrays and variables, beside other kinds" do
      expect do |run|
        holders = [1, 2.5, 3/2r].map { |r| Rationals::Holder.new(r) }
        run.peach(holders, 3) do |holder|
          r = holder.r
          holder.last = r.is_a?(Rational) ? [r, r.numerator, Rationals::Pair.new(r, nil)] : nil
          holder.r = r * Rationals::THIRD
        end
        holders.map { |holder| [holder.r, holder.last.to_a.map { |x| x.is_a?(Struct) ? x.to_a : x }] }
      end.to be_same_as_ruby
      roots = [1/2r, Rationals::THIRD, nil, 2, 0.5]
      expect { |i| [roots[i], roots[i] ? roots[i] * 3r : 0, roots.compact.sum, roots.index(2r), roots.compact.max, roots.include?(1/3r)] }.to be_same_as_ruby.over(0, 1, 2, 3, 4)
      expect { |x| [x > 1 ? Rational(x, 3) : x] }.to be_same_as_ruby.over(0, 3)
    end

    it "are summed, folded, sorted and told apart" do
      expect { |a| [a.sum, a.sum(1), a.inject(:+), a.inject(1) { |x, y| x * y }, a.min, a.max, a.minmax, a.sort, a.sort_by { |x| -x }, a.uniq, a.max_by(&:abs), a.map { |x| x + 1 }] }
        .to be_same_as_ruby.over([1/2r, 1/3r, 1/6r], [-1/2r, 2r, -1/2r], [0r])
      expect { |a| [a.sum, a.sort] }.to be_same_as_ruby.over([1/2r, 3, 0.1, -1/3r], [0.1, 0.2, 3/10r, 1e100, -1e100], [1, 2r])
      expect { |x| [case x when 1..1 then :range when 2r then :two when Rational then :rational else :other end] }.to be_same_as_ruby.over(1, 2, 3)
      expect { |x| [x.clamp(0, 1/2r), x.clamp(nil, 1), x.clamp(1, nil), x.clamp(-1.5, 3)] }.to be_same_as_ruby.over(*some)
      expect { |x| [x.clamp(1, 0)] }.to be_same_as_ruby.over(1r)
      expect { |x| x.clamp(1..2, 1) }.to be_same_as_ruby.over(1r)
      expect { |x| x.clamp("a", 1) }.to be_same_as_ruby.over(1r)
    end

    it "raise what Ruby raises for what is no number" do
      expect { |x| [1r + x] }.to be_same_as_ruby.over(nil, true, 2)
      expect { |x| [1r * x] }.to be_same_as_ruby.over(:a, 2.0)
      expect { |x| [1r < x] }.to be_same_as_ruby.over(nil, 2, Float::NAN)
      expect { |x| [1r <=> x, 1r == x] }.to be_same_as_ruby.over(nil, :a, 2)
    end

    it "raise IntegerOverflow where their parts leave 64 bits" do
      [->(r) { r * r }, ->(r) { r + (1/3r) }, ->(r) { r**3 }, ->(r) { 5 - r }].each do |grow|
        expect { [Rational(largest, 2**61)].pmap(&grow) }.to raise_error(Ikra::IntegerOverflow)
      end
      expect { [Rational(-(2**63), 3)].pmap(&:-@) }.to raise_error(Ikra::IntegerOverflow)
    end

    it "are the simplest ones near a number" do
      expect { |x| [x.rationalize, x.rationalize(0.5), x.rationalize(nil)] }.to be_same_as_ruby.over(0, 7, -7, largest, -(2**63))
      expect { |x| [x.rationalize] }.to be_same_as_ruby.over(*some, *(floats - [1e300]), 0.3, -0.1, 3.14, 0.001, -1e-9, 1/3.0, 123_456.789, 1e15)
      [0, 1, 5, 1/100r, -1/7r, 0.5, 0.01, -1e-3].each do |within|
        expect { |x| [x.rationalize(within)] }.to be_same_as_ruby.over(*some, 0.0, 0.3, -3.14, 2.5, 1e6)
      end
      expect { |x| [x.rationalize(x)] }.to be_same_as_ruby.over(1/3r, 0.3, -0.3)
      expect { |x| [0.5.rationalize(x)] }.to be_same_as_ruby.over(nil, :a)
      # their parts leave 64 bits
      [1e300, 1e-300].each { |x| expect { [x].pmap(&:rationalize) }.to raise_error(Ikra::IntegerOverflow) }
    end

    it "survive the garbage collector" do
      found = nil
      2.times do |time|
        # The first call compiles. Under stress that takes minutes in a process with many objects.
        GC.stress = time == 1
        found = [1/2r, -7/3r].pmap { |r| [r, r * 2, [r + 1]] }
      end
      GC.stress = false
      expect(found).to eq([[1/2r, 1r, [3/2r]], [-7/3r, -14/3r, [-4/3r]]])
      expect(found.flatten).to all(be_a(Rational))
    ensure
      GC.stress = false
    end
  end

  it "are refused where kernels would need other classes, or other forms" do
    expect { [1r].pmap { |r| r.coerce(2) } }.to raise_error(Ikra::CompileError, /Rational#coerce/)
    expect { [1r].pmap { |r| [r].sum(0.5) } }.to raise_error(Ikra::CompileError, /sum of Rationals from a Float on/)
    expect { [1r].pmap { |r| r.clamp(1..2) } }.to raise_error(Ikra::CompileError, /clamp of Rationals with two arguments/)
    expect { [1r].pmap { |r| 2**r } }.to raise_error(Ikra::CompileError, /do not know \*\* with a Rational/)
    expect { [1r].pmap { |r| 2.pow(r) } }.to raise_error(Ikra::CompileError, /do not know pow with a Rational/)
    expect { [1i].pmap { |z| 2.pow(z) } }.to raise_error(Ikra::CompileError, /do not know pow with a Complex/)
    expect { [1r].pmap { |r| 10.digits(r) } }.to raise_error(Ikra::CompileError, /do not take a Rational here/)
    expect { [7, 7r].pmap { |x| 2.quo(x) } }.to raise_error(Ikra::CompileError, /this form of quo.*two Integers is a Rational/m)
    expect { [1r].pmap { |r| r**r } }.to raise_error(Ikra::CompileError, /\*\* of a Rational with Integers and Floats only/)
    expect { [1r].pmap { |r| Math.sqrt(r) } }.to raise_error(Ikra::CompileError, /do not know sqrt with a Rational/)
    expect { [1r].pmap { |r| [1, 2][r] } }.to raise_error(Ikra::CompileError, /do not know \[\] with a Rational/)
    expect { [1r].pmap { |r| (1..3).include?(r) } }.to raise_error(Ikra::CompileError, /do not know include\? with a Rational/)
    expect { [1r].pmap { |r| r..2 } }.to raise_error(Ikra::CompileError, /Ranges of numbers only/)
    expect { [1r].pmap { |r| r + 1i } }.to raise_error(Ikra::CompileError, /compute with a Complex and a Rational/)
    expect { [1r].pmap { |r| Complex(1, 2) * r } }.to raise_error(Ikra::CompileError, /compute with a Complex and a Rational/)
    expect { [1r].pmap { |r| Complex(r, 1) } }.to raise_error(Ikra::CompileError, /no Complex of a Rational/)
    expect { [0.5].pmap { |x| Rational(x) } }.to raise_error(Ikra::CompileError, /no Rational of a Float/)
    expect { [Rationals::Coercing.new].pmap { |x| 1r + x } }.to raise_error(Ikra::CompileError, /coerce/)
    expect { [Rationals::Coercing.new].pmap { |x| 1r <=> x } }.to raise_error(Ikra::CompileError, /coerce/)
    expect { [Rational(1, 2**64)].pmap { |r| r > 0 } }.to raise_error(Ikra::CompileError, /beyond 64 bits/)
  end
end
