# frozen_string_literal: true

RSpec.describe "Logic" do
  values = [nil, false, true, 0, 1, 0.0, Float::NAN, :a]
  pairs = Values.pairs(values)

  on_every_backend do
    it "has && and ||, which give one of their operands" do
      expect { |a, b| a && b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| a || b }.to be_same_as_ruby.over(pairs)
      expect { |a, b| (a and b) || (b or a) }.to be_same_as_ruby.over(pairs)
    end

    it "has ! and not" do
      expect { |a| !a }.to be_same_as_ruby.over(values)
      expect { |a| (not a) == !!a }.to be_same_as_ruby.over(values)
    end

    it "does not run what it need not" do
      expect { |x| x == 0 || 10 / x > 1 }.to be_same_as_ruby.over(0, 1, 10, -1)
      expect { |x| x != 0 && 10 / x > 1 }.to be_same_as_ruby.over(0, 1, 10, -1)
    end

    it "has &, | and ^ of true, false and nil" do
      truths = Values.pairs([true, false, nil], [true, false, nil, 0])
      expect { |a, b| a & b }.to be_same_as_ruby.over(truths)
      expect { |a, b| a | b }.to be_same_as_ruby.over(truths)
      expect { |a, b| a ^ b }.to be_same_as_ruby.over(Values.pairs([true, false], [true, false, nil, 0]))
    end

    it "takes 0 and NaN for true" do
      expect { |a| a ? 1 : 2 }.to be_same_as_ruby.over(values)
    end

    it "compares Symbols" do
      expect { |a, b| a == b }.to be_same_as_ruby.over(Values.pairs(%i[a b longer+name]))
      expect { |a| a == :a ? :first : a }.to be_same_as_ruby.over(:a, :b, :"with space", :été)
    end

    it "converts nil to numbers" do
      expect { |x| x.to_i + x.to_f }.to be_same_as_ruby.over(nil, nil)
      expect { |x| x.to_i }.to be_same_as_ruby.over(nil, 3, -2.7)
    end

    it "skips calls on nil with &." do
      expect { |x| x&.abs }.to be_same_as_ruby.over(nil, -3, 4.5)
      expect { |x| x&.abs&.even? ? 1 : 2 }.to be_same_as_ruby.over(nil, -3, 4)
      expect { |x| x&.+(1 / 0) }.to be_same_as_ruby.over(nil, 1)
    end
  end
end
