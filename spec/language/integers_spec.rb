# frozen_string_literal: true

module IntegerHashes
  class << self
    def splitmix(x)
      z = (x + 0x9e37_79b9_7f4a_7c15) & 0xffff_ffff_ffff_ffff
      z = ((z ^ (z >> 30)) * 0xbf58_476d_1ce4_e5b9) & 0xffff_ffff_ffff_ffff
      z = ((z ^ (z >> 27)) * 0x94d0_49bb_1331_11eb) & 0xffff_ffff_ffff_ffff
      z ^ (z >> 31)
    end

    def fnv(x)
      hash = 0xcbf2_9ce4_8422_2325
      8.times { |i| hash = ((hash ^ ((x >> (8 * i)) & 0xff)) * 0x100_0000_01b3) & 0xffff_ffff_ffff_ffff }
      hash
    end

    def xorshift(x)
      state = x & 0xffff_ffff_ffff_ffff
      3.times do
        state = (state ^ (state << 13)) & 0xffff_ffff_ffff_ffff
        state ^= state >> 7
        state = (state ^ (state << 17)) & 0xffff_ffff_ffff_ffff
      end
      state
    end
  end
end

RSpec.describe "Integers" do
  pairs = Values.pairs(Values::INTEGERS)
  small = Values.pairs(Values::SMALL)

  on_every_backend do
    it "adds" do
      expect { |a, b| a + b }.to be_same_as_ruby.over(pairs)
    end

    it "subtracts" do
      expect { |a, b| a - b }.to be_same_as_ruby.over(pairs)
    end

    # Ruby before 3.2 has no such method, which is a NoMethodError.
    it "divides upwards where Ruby does" do
      expect { |a, b| a.ceildiv(b) }.to be_same_as_ruby.over(pairs)
    end

    it "multiplies" do
      expect { |a, b| a * b }.to be_same_as_ruby.over(pairs)
    end

    it "divides downwards" do
      expect { |a, b| a / b }.to be_same_as_ruby.over(pairs)
    end

    it "gives remainders the divisor's sign" do
      expect { |a, b| a % b }.to be_same_as_ruby.over(pairs)
    end

    it "has other divisions" do
      expect { |a, b| a.div(b) ^ a.modulo(b) }.to be_same_as_ruby.over(small)
      expect { |a, b| a.remainder(b) }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a.fdiv(b) }.to be_same_as_ruby.over(pairs)
    end

    it "divides and keeps the remainder" do
      expect do |a, b|
        q, r = a.divmod(b)
        q * 1000 + r
      end.to be_same_as_ruby.over(small)
    end

    it "raises to powers" do
      expect { |a, b| a**b }.to be_same_as_ruby.over(Values.pairs(Values::SMALL + [Values::MAX, Values::MIN], [0, 1, 2, 3, 5, 20]))
      expect { |a| -2**2 + a**2 }.to be_same_as_ruby.over(0, 3, -3)
    end

    it "refuses powers that would be Rationals" do
      expect { [2].pmap(backend:) { |x| x**-1 } }.to raise_error(StandardError) { |error| expect(error.ikra.index).to eq(0) }
    end

    it "computes powers modulo a number" do
      triples = [[3, 200, 13], [2, 0, 7], [-5, 3, 7], [7, 3, -5], [Values::MAX, 3, 1000], [2, 10, 1], [5, 3, 0]]
      expect { |a, b, m| a.pow(b, m) }.to be_same_as_ruby.over(triples)
    end

    it "negates" do
      expect { |a| -a }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a| +a - ~a }.to be_same_as_ruby.over(Values::INTEGERS - [Values::MAX, Values::MIN, Values::MIN + 1, 2**62])
      expect { |a| ~a }.to be_same_as_ruby.over(Values::INTEGERS)
    end

    it "combines bits" do
      expect { |a, b| a & b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a | b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a ^ b }.to be_same_as_ruby.over(pairs)
    end

    it "shifts" do
      counts = [0, 1, 2, 5, 31, 62, 63, 64, 65, 100, -1, -5, -63, -64, -100]
      expect { |a, n| a << n }.to be_same_as_ruby.over(Values.pairs(Values::INTEGERS, counts))
      expect { |a, n| a >> n }.to be_same_as_ruby.over(Values.pairs(Values::INTEGERS, counts))
    end

    it "reads single bits" do
      expect { |a, n| a[n] }.to be_same_as_ruby.over(Values.pairs(Values::INTEGERS, [0, 1, 31, 62, 63, 64, 1000, -1]))
    end

    it "wraps where only the low bits are asked for" do
      expect { |a| (a * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) & 0xffff_ffff_ffff }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a| (a * 48_271) % 2_147_483_647 }.to be_same_as_ruby.over(Values::INTEGERS)
    end

    it "knows hashes and generators on unsigned numbers of 64 bits" do
      expect { |a| IntegerHashes.splitmix(a) >> 11 }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a| IntegerHashes.fnv(a) & 0xffff }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a| IntegerHashes.xorshift(a) >> 1 }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a| (IntegerHashes.splitmix(a) & 0x7fff_ffff_ffff_ffff) % 1000 }.to be_same_as_ruby.over(Values::INTEGERS)
    end

    it "raises where a mask leaves what no kernel can hold" do
      expect { |a| a & 0xffff_ffff_ffff_ffff }.to be_same_as_ruby.over(Values::INTEGERS.reject(&:negative?))
      expect { [3, -1].pmap(backend:) { |x| x & 0xffff_ffff_ffff_ffff } }.to raise_error(Ikra::IntegerOverflow, "& gives an Integer beyond 64 bits")
    end

    it "is exact in between where only a remainder is taken" do
      expect { |a| (a * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 1_000_003 }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a, b| (a * b - a * (b + 1) + 7).modulo(97) }.to be_same_as_ruby.over(Values.pairs(Values::INTEGERS - [Values::MAX]))
    end

    it "raises where an intermediate result leaves 64 bits, as no kernel could go on" do
      expect { [1, Values::MAX].pmap(backend:) { |x| (x + 1) / 2 } }.to raise_error(Ikra::IntegerOverflow) do |error|
        expect(error).to be_a(RangeError).and be_a(Ikra::Error)
        expect(error.ikra.index).to eq(1)
        expect(error.backtrace.first).to start_with("#{__FILE__}:#{__LINE__ - 3}")
      end
    end

    it "reads literals in every base" do
      expect { |x| x + 0x7f + 0b1010 + 0o17 + 017 + 1_000_000 }.to be_same_as_ruby.over(0, -1)
    end

    it "holds the least and the greatest literal" do
      expect { |x| x.zero? ? 9_223_372_036_854_775_807 : -9_223_372_036_854_775_808 }.to be_same_as_ruby.over(0, 1)
    end

    it "asks of digits what Ruby asks, in its order" do
      expect { |x| x.digits(-3) }.to be_same_as_ruby.over(-1, 1)
      expect { |x| x.digits(16.9) }.to be_same_as_ruby.over(10, 255)
      expect { |x| x.digits(true) }.to be_same_as_ruby.over(1)
      expect { |x| x.digits(2, 3) }.to be_same_as_ruby.over(-1)
      expect { |x| x.digits(2, 3) }.to be_same_as_ruby.over(1)
    end
  end
end
