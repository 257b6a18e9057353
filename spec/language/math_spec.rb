# frozen_string_literal: true

RSpec.describe "Math" do
  floats = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 10.0, -3.7, 1e-300, 1e300, 100.25, Float::INFINITY, -Float::INFINITY, Float::NAN]
  numbers = floats + [0, 1, -1, 2, 10, 1000]

  on_every_backend do |name|
    it "takes square roots" do
      expect { |x| Math.sqrt(x) }.to be_same_as_ruby.over(floats)
      expect { |x| Math.sqrt(x) }.to be_same_as_ruby.over([0, 1, 2, 4, 15, -1, (2**53) + 1, Values::MAX])
      expect { |x| Integer.sqrt(x) }.to be_same_as_ruby.over([0, 1, 2, 3, 4, 24, 25, (2**53) + 1, ((2**31) - 1)**2, 3_037_000_499**2, (3_037_000_499**2) - 1, Values::MAX, -1])
    end

    it "takes square roots of mixed numbers" do
      expect { |x| Math.sqrt(x) }.to be_same_as_ruby.over(numbers)
    end

    it "raises DomainError as Ruby does" do
      expect { |x| Math.sqrt(x) }.to be_same_as_ruby.over(1.0, -1.0, -0.0)
      expect { |x| Math.log(x) > 1e9 }.to be_same_as_ruby.over(1.0, -1.0, -0.0, 5)
      expect { |x| Math.acos(x) > 1e9 }.to be_same_as_ruby.over(0.5, 1.5, -1.5)
      expect { |x| Math.gamma(x) > 1e9 }.to be_same_as_ruby.over(5.0, -1.0)
      expect { |x| Math.atanh(x) > 1e9 }.to be_same_as_ruby.over(0.5, 1.5, 1.0, -1.0)
      expect { |x| Math.acosh(x) > 1e9 }.to be_same_as_ruby.over(1.5, 0.5)
    end

    it "knows PI and E" do
      expect { |x| x * Math::PI + Math::E }.to be_same_as_ruby.over(0, 1, 2.5)
    end

    it "cannot compute with what is no number" do
      expect { |x| Math.sqrt(x) }.to be_same_as_ruby.over(4.0, nil, :a, true)
      expect { |x| Math.atan2(1.0, x) > 100 }.to be_same_as_ruby.over(4.0, nil)
    end

    next if name == :cuda # NVIDIA's functions are within documented bounds, not equal

    it "has the trigonometric functions" do
      expect { |x| Math.sin(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.cos(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.tan(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.asin(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.acos(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.atan(x) }.to be_same_as_ruby.over(numbers)
      expect { |a, b| Math.atan2(a, b) }.to be_same_as_ruby.over(Values.pairs(floats))
    end

    it "has the hyperbolic functions" do
      expect { |x| Math.sinh(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.cosh(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.tanh(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.asinh(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.acosh(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.atanh(x) }.to be_same_as_ruby.over(numbers)
    end

    it "has exponentials and logarithms" do
      expect { |x| Math.exp(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.log(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.log2(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.log10(x) }.to be_same_as_ruby.over(numbers)
      expect { |a, b| Math.log(a, b) }.to be_same_as_ruby.over(Values.pairs([1.0, 8.0, 100, 0.0, Float::INFINITY], [2.0, 10, 0.5, 1.0, -2.0]))
    end

    it "has the others" do
      expect { |x| Math.cbrt(x) }.to be_same_as_ruby.over(numbers)
      expect { |a, b| Math.hypot(a, b) }.to be_same_as_ruby.over(Values.pairs(floats))
      expect { |x| Math.erf(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.erfc(x) }.to be_same_as_ruby.over(numbers)
      expect { |x| Math.gamma(x) }.to be_same_as_ruby.over(numbers + [5, 23, 24, 171.0, 172.0, -1.5])
      expect { |a, n| Math.ldexp(a, n) }.to be_same_as_ruby.over(Values.pairs(floats, [0, 1, -1, 10, -1074, 2000]))
    end
  end
end
