# frozen_string_literal: true

module Complexes
  class Holder
    attr_accessor :z, :last

    def initialize(z) = @z = z
  end

  UNIT = Complex(0, 1)
end

RSpec.describe "Complex numbers" do
  numbers = [0.0, -0.0, 1.0, -1.5, 2.5, 1e200, 1e-200, Float::INFINITY, -Float::INFINITY, Float::NAN]
  floats = numbers.product(numbers).map { |a, b| Complex(a, b) }
  mixed = [0, 1, -3, 2.5, -0.0, 0.0, Float::INFINITY].then { |parts| parts.product(parts) }.map { |a, b| Complex(a, b) }

  on_every_backend do |name|
    it "are added, subtracted and multiplied as Ruby does it" do
      numbers.zip([2.0, -0.5, 0, -0.0, 1e300, 3, Float::INFINITY, 0.0, 1, -1]).each_slice(4) do |some|
        some.each do |a, b|
          other = Complex(a, b)
          expect { |z| [z + other, z - other, z * other, other * z, z == other, z + a, a - z, z * a, a * z, -z, z.conj] }.to be_same_as_ruby.over(*floats)
        end
      end
      [Complex(0, 2.5), Complex(-3, 1), Complex(-0.0, 0), 2, -0.0].each do |other|
        expect { |z| [z + other, z - other, z * other, other + z, other - z, other * z, z == other, other != z, z.eql?(other)] }.to be_same_as_ruby.over(*mixed)
      end
    end

    it "are divided where a part is a Float" do
      expect { |z| [z / Complex(1.5, -2.0), z / 2.5, 2.0 / z, 3 / z, z / z] }.to be_same_as_ruby.over(*floats)
      expect { |x| [Complex(x, 2) / Complex(0.5, 1.0)] }.to be_same_as_ruby.over(1, -3, 0)
    end

    it "tell their parts and their length" do
      expect { |z| [z.real, z.imaginary, z.imag, z.abs2, z.rect, z.rectangular, z.real?, z.zero?, z.nonzero?, z.finite?, z.infinite?, z.to_c] }
        .to be_same_as_ruby.over(*floats, *mixed)
      lengths = [Complex(3, 4), Complex(0, -3), Complex(-2.5, 0), Complex(-0.0, 0.0)]
      # NVIDIA's hypot is within documented bounds, but not equal.
      lengths << Complex(1e200, 1e200) unless name == :cuda
      expect { |z| [z.abs, z.magnitude, z.arg, z.angle, z.phase] }.to be_same_as_ruby.over(*lengths)
    end

    it "are made by Complex(), literals, rect and polar" do
      expect { |x| [Complex(x, 1), Complex(x), Complex.rect(x), Complex.rectangular(1, x), 2i, 1.5i + x, -3i * x, Complex.polar(x, 0.0), Complex.polar(2, x)] }
        .to be_same_as_ruby.over(0, 2, -1, 0.5, Math::PI, Math::PI / 2, -0.0)
    end

    it "are in instance variables, arrays, Structs and variables, beside other kinds" do
      expect do |run|
        holders = [1, 2.5, Complex(1.5, 2)].map { |z| Complexes::Holder.new(z) }
        run.peach(holders, 3) do |holder|
          z = holder.z
          holder.last = z.is_a?(Complex) ? [z, z.real] : nil
          holder.z = z * Complexes::UNIT
        end
        holders.map { |holder| [holder.z, holder.last] }
      end.to be_same_as_ruby
      unit = Complex(0.6, 0.8)
      roots = [Complex(1.0, 0.0), unit, nil]
      expect { |i| [roots[i], roots[i] ? roots[i] * unit : 0, roots.compact.sum, roots.index(unit)] }.to be_same_as_ruby.over(0, 1, 2)
      expect { |x| [x > 1 ? Complex(x, 1) : x] }.to be_same_as_ruby.over(0, 1.5, 3)
    end

    it "are made by thousands, some of parts that are objects themselves, beside Rationals and Ranges" do
      parts = [0, -1, 2**62, 1 - 2**63, 2**61, 0.5, 1e300, -0.0, 5e-324, Float::INFINITY]
      indices = (0...2500).to_a
      expect { |i| [Complex(parts[i % 5], parts[i / 7 % 5])] }.to be_same_as_ruby.over(*indices)
      expect { |i| [Complex(parts[5 + i % 5], parts[5 + i / 7 % 5])] }.to be_same_as_ruby.over(*indices)
      expect { |i| [Complex(i, i * 0.5), Rational(i, 7), (i..i + 2), i.even? ? Complex(i, 1.5) : nil, Complex(parts[i % 10], 1)] }
        .to be_same_as_ruby.over(*indices)
    end

    it "iterate as registers" do
      grid = (-4..4).flat_map { |y| (-8..2).map { |x| Complex(x / 4.0, y / 4.0) } }
      expect do |c|
        z = Complex(0.0, 0.0)
        steps = 0
        while steps < 100 && z.abs < 2
          z = (z * z) + c
          steps += 1
        end
        [steps, z]
      end.to be_same_as_ruby.over(*grid)
    end

    it "raise TypeError for what is no number" do
      expect { |x| [Complex(1.0, 2.0) + x] }.to be_same_as_ruby.over(nil, true, 2)
      expect { |x| [Complex(1.0, 2.0) * x] }.to be_same_as_ruby.over(:a, 2.0)
    end

    it "survive the garbage collector" do
      found = nil
      2.times do |time|
        # The first call compiles. Under stress that takes minutes in a process with many objects.
        GC.stress = time == 1
        found = [Complex(1, 2.5), Complex(1e300, -0.0)].pmap { |z| [z, z * 2, [z.real]] }
      end
      GC.stress = false
      expect(found).to eq([[Complex(1, 2.5), Complex(2, 5.0), [1]], [Complex(1e300, -0.0), Complex(2e300, -0.0), [1e300]]])
    ensure
      GC.stress = false
    end
  end

  on_every_backend do
    it "divide by numbers only" do
      expect { |z| [z.fdiv(2), z.fdiv(0.5)] }.to be_same_as_ruby.over(Complex(1, 2), Complex(1.5, -2))
      [nil, :a, "a", [1], true].each do |other|
        expect { |z| z.fdiv(other) }.to be_same_as_ruby.over(Complex(1, 2))
        expect { |z| z.fdiv(other) }.to be_same_as_ruby.over(Complex(1.5, 2))
      end
    end
  end

  it "are refused where Ruby would make Rationals" do
    expect { [Complex(1, 2)].pmap { |z| z / Complex(3, 4) } }.to raise_error(Ikra::CompileError, /Rational/)
    expect { [2].pmap { |x| x**1i } }.to raise_error(Ikra::CompileError, /do not know \*\* with a Complex/)
    expect { [2].pmap { |x| x < 1i } }.to raise_error(Ikra::CompileError, /do not know < with a Complex/)
    expect { [2].pmap { |x| Math.sqrt(x * 1i) } }.to raise_error(Ikra::CompileError, /do not know sqrt with a Complex/)
    expect { [Complex(1, 2r)].pmap { |z| z.imag } }.to raise_error(Ikra::CompileError, /Complexes of Rationals/)
  end
end
