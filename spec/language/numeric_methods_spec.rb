# frozen_string_literal: true

RSpec.describe "Numeric methods" do
  integers = Values::INTEGERS
  floats = Values::FLOATS
  moderate = floats.select { |x| x.finite? && x.abs < 2.0**62 }

  on_every_backend do
    it "raise in Ruby's words and order" do
      expect { |x| x.divmod(1i) }.to be_same_as_ruby.over(1)
      expect { |x| x.divmod(1i) }.to be_same_as_ruby.over(1.5)
      expect { |x| x.digits(nil) }.to be_same_as_ruby.over(1)
      expect { |x| [x].fetch(2.5) }.to be_same_as_ruby.over(1)
      expect { |x| x.instance_variable_get(:a) }.to be_same_as_ruby.over(1)
      expect { |x| "ab".index(x, nil) }.to be_same_as_ruby.over(1)
      expect { |x| "ab".rindex(x, :b) }.to be_same_as_ruby.over(1)
      expect { |x| "ab".byteslice(0..x, 1) }.to be_same_as_ruby.over(1)
    end

    it "refuse to sum Floats from what is no number on" do
      expect { [1].pmap(backend:) { |_| [0.5].sum(nil) } }.to raise_error(Ikra::CompileError, /sum of numbers from such a start on/)
      expect { [1].pmap(backend:) { |_| [0.5].sum(1i) rescue 0 } }.to raise_error(Ikra::CompileError, /sum of numbers from such a start on/)
    end

    it "has abs and magnitude" do
      expect { |x| x.abs }.to be_same_as_ruby.over(integers)
      expect { |x| x.abs }.to be_same_as_ruby.over(floats)
      expect { |x| x.magnitude }.to be_same_as_ruby.over(1, -2, 3.5, -0.0)
    end

    it "has min and max of two and more" do
      expect { |a, b| [a, b].min }.to be_same_as_ruby.over(Values.pairs(Values::SMALL))
      expect { |a, b| [a, b, 5].max }.to be_same_as_ruby.over(Values.pairs(Values::SMALL))
      expect { |a, b| [a, b].max }.to be_same_as_ruby.over(Values.pairs([0.0, 1.5, -2.5, Float::INFINITY]))
      expect { |a, b| [a, b, 3].sum }.to be_same_as_ruby.over(Values.pairs(Values::SMALL + [Values::MAX - 100]))
    end

    it "rounds Floats to Integers" do
      expect { |x| x.floor }.to be_same_as_ruby.over(floats)
      expect { |x| x.ceil }.to be_same_as_ruby.over(floats)
      expect { |x| x.round }.to be_same_as_ruby.over(floats)
      expect { |x| x.truncate }.to be_same_as_ruby.over(floats)
      expect { |x| x.to_i }.to be_same_as_ruby.over(floats)
    end

    it "rounds Floats to digits" do
      values = moderate + [1.005, 2.675, 0.285, 1234.5678, -1234.5678, 1e15 + 0.3]
      expect { |x| x.round(2) }.to be_same_as_ruby.over(values)
      expect { |x| x.floor(1) }.to be_same_as_ruby.over(values)
      expect { |x| x.ceil(3) }.to be_same_as_ruby.over(values)
      expect { |x| x.round(-2) }.to be_same_as_ruby.over([1234.5, -1250.0, 50.0, 49.9])
      expect { |x| x.truncate(1) }.to be_same_as_ruby.over(values)
    end

    it "rounds Integers" do
      expect { |x| x.floor + x.ceil + x.round + x.truncate }.to be_same_as_ruby.over(Values::SMALL)
      expect { |x| x.round(-2) }.to be_same_as_ruby.over([0, 49, 50, 51, 150, 250, -50, -150, 1_234_567])
      expect { |x| x.floor(-1) * 10_000 + x.ceil(-1) }.to be_same_as_ruby.over([0, 1, 9, 11, -1, -11])
    end

    it "converts" do
      expect { |x| x.to_f }.to be_same_as_ruby.over(integers)
      expect { |x| x.to_i }.to be_same_as_ruby.over(integers)
      expect { |x| x.to_f }.to be_same_as_ruby.over(floats)
      expect { |x| Integer(x) }.to be_same_as_ruby.over(moderate + [Float::NAN, Float::INFINITY])
      expect { |x| Float(x) }.to be_same_as_ruby.over(integers)
    end

    it "asks Integers" do
      expect { |x| x.even? ? 1 : 0 }.to be_same_as_ruby.over(integers)
      expect { |x| x.odd? == x.zero? }.to be_same_as_ruby.over(integers)
      expect { |x| x.positive? ? 1 : x.negative? ? -1 : 0 }.to be_same_as_ruby.over(integers)
      expect { |x| x.nonzero? }.to be_same_as_ruby.over(integers)
      expect { |x| x.bit_length }.to be_same_as_ruby.over(integers)
      expect { |x| x.integer? && x.finite? && x.infinite?.nil? }.to be_same_as_ruby.over(integers)
      expect { |x| x.allbits?(6) ? 1 : x.anybits?(6) ? 2 : x.nobits?(6) ? 3 : 4 }.to be_same_as_ruby.over(integers)
    end

    it "asks Floats" do
      expect { |x| x.zero? }.to be_same_as_ruby.over(floats)
      expect { |x| x.nan? }.to be_same_as_ruby.over(floats)
      expect { |x| x.finite? }.to be_same_as_ruby.over(floats)
      expect { |x| x.infinite? }.to be_same_as_ruby.over(floats)
      expect { |x| x.positive? ? 1 : x.negative? ? -1 : 0 }.to be_same_as_ruby.over(floats)
      expect { |x| x.nonzero? }.to be_same_as_ruby.over(floats)
      expect { |x| x.integer? }.to be_same_as_ruby.over(floats)
    end

    it "walks to neighbours" do
      expect { |x| x.succ - x.pred }.to be_same_as_ruby.over(Values::SMALL)
      expect { |x| x.succ }.to be_same_as_ruby.over(integers)
      expect { |x| x.pred }.to be_same_as_ruby.over(integers)
      expect { |x| x.next_float }.to be_same_as_ruby.over(floats)
      expect { |x| x.prev_float }.to be_same_as_ruby.over(floats)
    end

    it "has number theory" do
      expect { |a, b| a.gcd(b) }.to be_same_as_ruby.over(Values.pairs(Values::SMALL + [Values::MAX, 2**62, Values::MIN + 1]))
      expect { |a, b| a.lcm(b) }.to be_same_as_ruby.over(Values.pairs(Values::SMALL))
      expect { |x| x.numerator + x.denominator }.to be_same_as_ruby.over(Values::SMALL)
    end

    it "works on values that are now one kind, now the other" do
      mixed = [1, -2.5, 0, -0.0, 7, 1e10]
      expect { |x| x.abs }.to be_same_as_ruby.over(mixed)
      expect { |x| x.floor }.to be_same_as_ruby.over(mixed)
      expect { |x| x.zero? }.to be_same_as_ruby.over(mixed)
      expect { |x| x.to_f }.to be_same_as_ruby.over(mixed)
    end

    it "answers a missing method with NoMethodError" do
      expect { |x| x.even? }.to be_same_as_ruby.over(2, 2.5)
      expect { |x| x.nan? }.to be_same_as_ruby.over(2.5, 2)
      expect { |x| x.abs }.to be_same_as_ruby.over(2, nil, true, :a)
      expect { |x| x.frobnicate }.to be_same_as_ruby.over(2)
    end

    it "answers a wrong number of arguments with ArgumentError" do
      expect { |x| x > 1 ? x.abs(1) : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? x.clamp : x }.to be_same_as_ruby.over(1, 2)
    end
  end
end
