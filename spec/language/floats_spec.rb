# frozen_string_literal: true

RSpec.describe "Floats" do
  pairs = Values.pairs(Values::FLOATS)

  on_every_backend do
    it "adds" do
      expect { |a, b| a + b }.to be_same_as_ruby.over(pairs)
    end

    it "subtracts" do
      expect { |a, b| a - b }.to be_same_as_ruby.over(pairs)
    end

    it "multiplies" do
      expect { |a, b| a * b }.to be_same_as_ruby.over(pairs)
    end

    it "divides" do
      expect { |a, b| a / b }.to be_same_as_ruby.over(pairs)
    end

    it "gives remainders the divisor's sign" do
      expect { |a, b| a % b }.to be_same_as_ruby.over(pairs)
    end

    it "has other divisions" do
      expect { |a, b| a.fdiv(b) }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a.quo(b) }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a.div(b) }.to be_same_as_ruby.over(Values.pairs([0.0, -0.0, 1.5, -7.25, 1e18, Float::NAN, Float::INFINITY], [0.5, -2.0, 0.0, -0.0, Float::INFINITY]))
    end

    it "divides and keeps the remainder" do
      expect do |a, b|
        q, r = a.divmod(b)
        q * 0.5 + r
      end.to be_same_as_ruby.over(Values.pairs([0.0, 7.5, -7.5, 1e10, Float::INFINITY], [2.0, -2.0, 0.3, 0.0]))
      expect { |a, b| a.divmod(b) }.to be_same_as_ruby.over(Values.pairs([0.0, -0.0, 7.5, -7.5, 1e10, Float::INFINITY, 7, -7], [2.0, -2.0, 0.3, 0.0, 3, -3, Float::INFINITY]))
      expect { |a| [a.divmod(2.0).first, a.divmod(0.5r), 7.divmod(2.5)] }.to be_same_as_ruby.over([7.5, -7.5])
    end

    it "negates and keeps the sign of zero" do
      expect { |a| -a }.to be_same_as_ruby.over(Values::FLOATS)
      expect { |a| +a }.to be_same_as_ruby.over(Values::FLOATS)
      expect { |a| a * -0.0 }.to be_same_as_ruby.over(Values::FLOATS)
    end

    it "never contracts a product and a sum" do
      values = (1..50).map { |i| 1.0 + i / 7.0 }
      expect { |a| a * a + a }.to be_same_as_ruby.over(values)
      expect { |a| a * 1.1 - a * a * 1.1 + 0.1 }.to be_same_as_ruby.over(values)
    end

    it "reads literals" do
      expect { |a| a + 1.5e3 + 2E-3 + 0.1 + 1_000.25 }.to be_same_as_ruby.over(0.0, -0.0, 1e308)
    end

    it "knows the constants of Float" do
      expect { |a| a > Float::EPSILON ? Float::MAX : Float::MIN }.to be_same_as_ruby.over(0.0, 1.0)
      expect { |a| a == Float::INFINITY ? Float::NAN : -Float::INFINITY }.to be_same_as_ruby.over(0.0, Float::INFINITY)
      expect { |a| a + Float::DIG + Float::MANT_DIG }.to be_same_as_ruby.over(0.0)
    end
  end

  on_every_backend do |name|
    next if name == :cuda # NVIDIA's pow is within a bound, not equal

    it "raises to powers as libm does" do
      bases = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1.7, Float::INFINITY, Float::NAN, 1e100]
      expect { |a, b| a**b }.to be_same_as_ruby.over(Values.pairs(bases, [0.0, -0.0, 1.0, 2.0, -1.0, 3.0, Float::INFINITY, -Float::INFINITY, Float::NAN]))
      expect { |a| a**0.5 }.to be_same_as_ruby.over(bases.reject { |x| x < 0 })
    end
  end

  on_every_backend do
    it "refuses powers that would be Complex" do
      expect { [-8.0].pmap(backend:) { |x| x**0.5 } }.to raise_error(StandardError) { |error| expect(error.ikra.index).to eq(0) }
    end
  end
end
