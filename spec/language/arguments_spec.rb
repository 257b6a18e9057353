# frozen_string_literal: true

module Arguments
  class << self
    def positional(a, b, c) = a * 100 + b * 10 + c
    def default(a, b = a + 1, c = b * 2) = a * 100 + b * 10 + c
    def middle(a, b = 5, c) = a * 100 + b * 10 + c
    def keyword(a, by:, to: by * 2) = a * 100 + by * 10 + to
    def only(x: 1, y: x) = x * 10 + y
    def changed(a)
      a += 1
      a = a * 2.0 if a > 2
      a
    end

    def maybe(a = nil) = a.nil? ? -1 : a
  end
end

RSpec.describe "Arguments" do
  on_every_backend do
    it "is all that there is for a block that takes the rest" do
      expect([1, 2, 3].pmap { |*x| x }).to eq([[1], [2], [3]])
      expect((1..3).pmap { |*x| x }).to eq([[1], [2], [3]])
      expect([1, 2, 3].psum { |*x| x.sum }).to eq(6)
      expect([1, 2].pmap { |*x, y| [x, y] }).to eq([[[], 1], [[], 2]])
      expect([[1, 2, 3], [4, 5, 6]].pmap { |a, *b| [a, b] }).to eq([[1, [2, 3]], [4, [5, 6]]])
      expect([[1, 2, 3], [4, 5, 6]].pmap { |a, *b, c| [a, b, c] }).to eq([[1, [2], 3], [4, [5], 6]])
      expect([[1, 2], [3, 4]].pmap { |a, *| a }).to eq([1, 3])
    end

    it "is positional" do
      expect { |x| Arguments.positional(x, 2, x + 1) }.to be_same_as_ruby.over(1, -1, 2.5)
    end

    it "has defaults, which may use the arguments before" do
      expect { |x| Arguments.default(x) + Arguments.default(x, 7) + Arguments.default(x, 7, 9) }.to be_same_as_ruby.over(1, -1, 2.5)
      expect { |x| Arguments.middle(x, 2) * 1000 + Arguments.middle(x, 2, 3) }.to be_same_as_ruby.over(1, -1)
      expect { |x| x > 1 ? Arguments.maybe(x) : Arguments.maybe }.to be_same_as_ruby.over(1, 2)
    end

    it "has keywords, in any order" do
      expect { |x| Arguments.keyword(x, by: 2) + Arguments.keyword(x, to: 1, by: x) }.to be_same_as_ruby.over(1, -1, 2.5)
      expect { |x| Arguments.only + Arguments.only(x: x) + Arguments.only(y: x) + Arguments.only(y: 2, x:) }.to be_same_as_ruby.over(1, -1)
    end

    it "is evaluated from left to right" do
      expect do |x|
        n = x
        Arguments.positional(n += 1, n *= 2, n -= 3)
      end.to be_same_as_ruby.over(1, 10)
      expect do |x|
        n = x
        Arguments.keyword(n += 1, to: n *= 2, by: n -= 3)
      end.to be_same_as_ruby.over(1, 10)
    end

    it "is a copy that the method may change" do
      expect do |x|
        y = x
        Arguments.changed(y) * 1000 + y
      end.to be_same_as_ruby.over(0, 1, 5)
    end

    it "of a wrong number is an ArgumentError where it is reached" do
      expect { |x| x > 1 ? Arguments.positional(x) : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Arguments.positional(x, 1, 2, 3) : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Arguments.default : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Arguments.keyword(x) : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Arguments.keyword(x, by: 1, at: 2) : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Arguments.keyword(x, by: 1, at: 2, of: 3) : x }.to be_same_as_ruby.over(1, 2)
    end

    it "is left out by blocks that want fewer, and nil for those that want more" do
      expect { 7 }.to be_same_as_ruby.over(1, 2)
      expect { |a, b| b.nil? ? a : b }.to be_same_as_ruby.over(1, 2)
      expect { |(a, b)| a + b }.to be_same_as_ruby.over([1, 2], [3, 4])
      expect { |(a, b), (c, d)| a + b + c + d }.to be_same_as_ruby.over([[1, 2], [3, 4]], [[5, 6], [7, 8]])
      expect { |a, b = 9| a + b }.to be_same_as_ruby.over(1, 2)
    end
  end
end
