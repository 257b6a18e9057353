# frozen_string_literal: true

RSpec.describe "Conditionals" do
  on_every_backend do
    it "has if, elsif and else" do
      expect do |x|
        if x < 0
          :negative
        elsif x == 0
          :zero
        elsif x > 100 then :large
        else
          :positive
        end
      end.to be_same_as_ruby.over(Values::INTEGERS)
    end

    it "gives nil where no branch runs" do
      expect { |x| if x > 0 then x end }.to be_same_as_ruby.over(-1, 0, 1)
      expect { |x| x * 2 unless x > 0 }.to be_same_as_ruby.over(-1, 0, 1)
      expect { |x| if x > 0; end }.to be_same_as_ruby.over(-1, 1)
    end

    it "has unless with else" do
      expect do |x|
        unless x.even?
          x * 10
        else
          x
        end
      end.to be_same_as_ruby.over(0, 1, 2, -1)
    end

    it "has modifiers and ternaries, nested" do
      expect do |x|
        y = 0
        y += 1 if x > 1
        y += 10 unless x > 1
        y + (x.odd? ? x > 2 ? 100 : 200 : x > 2 ? 300 : 400)
      end.to be_same_as_ruby.over(0, 1, 2, 3, 4)
    end

    it "gives what its branches give, of several types" do
      expect { |x| if x == 0 then nil elsif x == 1 then 1.5 elsif x == 2 then true elsif x == 3 then :sym else x end }
        .to be_same_as_ruby.over(0, 1, 2, 3, 4)
    end

    it "may assign in the condition" do
      expect { |x| (y = x.nonzero?) ? y + 1 : -1 }.to be_same_as_ruby.over(0, 1, -2)
    end

    it "keeps apart what a test has told" do
      expect { |x| x.nil? ? 0 : x + 1 }.to be_same_as_ruby.over(nil, 1, 2.5)
      expect { |x| x.is_a?(Integer) ? x.even? : x.nan? }.to be_same_as_ruby.over(1, 2, 2.5, Float::NAN)
      expect { |x| x && x > 1 ? x * 2 : 0 }.to be_same_as_ruby.over(nil, 1, 2.5, 3)
      expect { |x| x == nil || x < 0 ? 0 : x }.to be_same_as_ruby.over(nil, 1, -2.5, 3)
    end

    it "does not run the other branch" do
      expect { |x| x.zero? ? 0 : 100 / x }.to be_same_as_ruby.over(0, 1, -3, 7)
      expect { |x| x ? x + 1 : x.no_such_method }.to be_same_as_ruby.over(1, 2, nil)
    end
  end
end
