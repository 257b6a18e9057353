# frozen_string_literal: true

RSpec.describe "Integers with Floats" do
  floats = [0.0, -0.0, 1.0, -2.5, 0.1, 2.0**53, 1e300, Float::INFINITY, -Float::INFINITY, Float::NAN]
  pairs = Values.pairs(Values::INTEGERS, floats)

  on_every_backend do
    it "adds and subtracts" do
      expect { |a, b| a + b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| b - a }.to be_same_as_ruby.over(pairs)
    end

    it "multiplies and divides" do
      expect { |a, b| a * b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a / b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| b / a }.to be_same_as_ruby.over(pairs)
    end

    it "gives remainders" do
      expect { |a, b| a % b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| b % a }.to be_same_as_ruby.over(pairs)
    end

    it "compares exactly, beyond 2**53 too" do
      near = [2.0**53, (2.0**53) + 2, -(2.0**53), 2.0**63, -(2.0**63), 2.0**62, 0.5, -0.0, Float::INFINITY, -Float::INFINITY, Float::NAN]
      close = Values.pairs(Values::INTEGERS + [2**53, (2**53) - 1, -(2**53), (2**62) + 1], near)
      expect { |a, b| a == b }.to be_same_as_ruby.over(close)
      expect { |a, b| a < b }.to be_same_as_ruby.over(close)
      expect { |a, b| a >= b }.to be_same_as_ruby.over(close)
      expect { |a, b| b <= a }.to be_same_as_ruby.over(close)
      expect { |a, b| a <=> b }.to be_same_as_ruby.over(close)
      expect { |a, b| b <=> a }.to be_same_as_ruby.over(close)
    end

    it "gives each element the kind that Ruby gives it" do
      expect { |x| x * 2 + 1 }.to be_same_as_ruby.over(1, 2.5, -3, -0.0, Values::MAX / 4, Float::NAN)
      expect { |x| x > 1 ? x : 0.5 }.to be_same_as_ruby.over(0, 1, 2, 3)
      expect { |x| x.even? ? 1 : 1.0 }.to be_same_as_ruby.over(0, 1, 2, 3)
    end

    it "cannot add what is no number" do
      expect { |x| 1 + x }.to be_same_as_ruby.over(1, 2.0, nil)
      expect { |x| 1.5 * x }.to be_same_as_ruby.over(1, 2.0, nil, true, false, :symbol)
      expect { |x| 7 - x }.to be_same_as_ruby.over(1, nil, :symbol)
      expect { |x| 7 & x }.to be_same_as_ruby.over(1, nil, 1.5)
    end
  end
end
