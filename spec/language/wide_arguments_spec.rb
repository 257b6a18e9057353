# frozen_string_literal: true

# Where Ruby's own code takes an argument as a C int, an Integer beyond 32 bits is a RangeError, also in kernels.
RSpec.describe "Arguments that Ruby takes as a C int" do
  texts = ["2026-11-30", "a"]

  on_every_backend do
    it "raise RangeError beyond 32 bits, in Ruby's words" do
      expect { |n| texts[0].match(/(\d)-/)[n] }.to be_same_as_ruby.over(0, 1, 2, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**62)
      expect { |n| texts[0][/(\d)-/, n] }.to be_same_as_ruby.over(0, 1, -1, 2**31 - 1, 2**31, -2**31, -2**31 - 1)
      expect { |n| texts[0].match(/(\d)-/).begin(n) }.to be_same_as_ruby.over(0, 1, 2**31, -2**40)
      expect { |n| texts[0].match(/(\d)-/).values_at(n, 0) }.to be_same_as_ruby.over(0, 1, 2**31, -2**40)
      expect { |n| texts[0].split("-", n) }.to be_same_as_ruby.over(0, 1, 2, -1, 2**31 - 1, 2**31, -2**40)
      expect { |n| texts[0].to_i(n) }.to be_same_as_ruby.over(2, 10, 36, 37, 2**31 - 1, 2**31, -2**40)
      expect { |n| Integer("7", n) }.to be_same_as_ruby.over(8, 10, 37, 2**31, -2**40)
      expect { |n| 12.to_s(n) }.to be_same_as_ruby.over(2, 10, 36, 37, 2**31 - 1, 2**31, -2**40)
      expect { |n| [1, [2, 3]].flatten(n) }.to be_same_as_ruby.over(0, 2**31 - 1, 2**31, -2**31, -2**40)
    end

    it "raise it where they are written out" do
      expect { |text| text.size > 1 ? text[/\d/, 0x1_0000_0000] : text }.to be_same_as_ruby.over(*texts)
      expect { |text| text.size > 1 ? text.split("-", 0x1_0000_0000) : text }.to be_same_as_ruby.over(*texts)
    end

    it "may be Floats and nil as far as Ruby takes these" do
      expect { |n| texts[0][/(\d)-/, n] }.to be_same_as_ruby.over(1.5, nil, 1e12, Float::NAN)
      expect { |n| texts[0].split("-", n) }.to be_same_as_ruby.over(2.9, -1e10)
    end
  end
end
