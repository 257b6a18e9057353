# frozen_string_literal: true

RSpec.describe "Local variables" do
  on_every_backend do
    it "is assigned and read" do
      expect do |x|
        y = x + 1
        z = y * 2
        y = z - x
        y + z
      end.to be_same_as_ruby.over(0, 5, -5)
    end

    it "has every operator assignment" do
      expect do |x|
        y = x
        y += 3
        y -= 1
        y *= 5
        y /= 2
        y %= 100
        y **= 2
        y <<= 2
        y >>= 1
        y |= 9
        y &= 0xfff
        y ^= 5
        y
      end.to be_same_as_ruby.over(0, 5, -5, 1000)
    end

    it "has ||= and &&=" do
      expect do |x|
        y = x
        y ||= 7
        z = x
        z &&= 8
        z ||= y
        y.to_i * 100 + (z == true ? 1 : z.to_i)
      end.to be_same_as_ruby.over(nil, 3, 2.5)
      expect { |x| y = (x == 1 || nil); y ||= false; y }.to be_same_as_ruby.over(0, 1)
    end

    it "assigns several at once" do
      expect do |x|
        a, b = x, x + 1
        a, b = b, a
        c = d = a * b
        a * 1000 + b * 100 + c - d
      end.to be_same_as_ruby.over(0, 5, -5)
    end

    it "takes an array apart" do
      expect do |row|
        a, b, c = row
        a + b * 10 + (c.nil? ? 0 : c * 100)
      end.to be_same_as_ruby.over([1, 2, 3], [4, 5, 6], [7, 8])
    end

    it "may change its type" do
      expect do |x|
        y = x
        y = y.to_f / 2 if y > 1
        y = nil if x > 5
        y
      end.to be_same_as_ruby.over(0, 1, 2, 3, 6)
    end

    it "is nil where no path assigned it" do
      expect do |x|
        y = 1 if x > 0
        y.nil? ? -1 : y
      end.to be_same_as_ruby.over(0, 1)
      expect { |x| z = z.nil? ? x : 0; z }.to be_same_as_ruby.over(5)
    end

    it "is visible in inner blocks, whose own are not outside" do
      expect do |x|
        sum = 0
        i = 100
        3.times do |i|
          inner = i * x
          sum += inner
        end
        2.times { |j; sum| sum = j }
        sum + i
      end.to be_same_as_ruby.over(0, 5, -5)
    end

    it "starts anew in each round of a block, but not of a loop" do
      expect do |x|
        count = 0
        3.times do |i|
          seen = i if i == x
          count += 1 if seen.nil?
        end
        n = 0
        while n < 3
          kept = n if n == x
          count += 10 if kept.nil?
          n += 1
        end
        count
      end.to be_same_as_ruby.over(0, 1, 5)
    end

    it "may be called as Ruby's and C++'s words are" do
      expect do |int|
        float = int + 1
        double = float * 2
        register, volatile, auto = int, float, double
        template = register + volatile + auto
        this = template - 1
        new = this
        delete = new
        delete
      end.to be_same_as_ruby.over(1, 2)
      expect { |größe| größe * 2 }.to be_same_as_ruby.over(1, 2)
    end

    it "adds to what a variable was before a lambda assigned it" do
      apply = ->(f) { f.() }
      expect { |x| v = x; f = -> { v += 1 }; v += f.call; v }.to be_same_as_ruby.over(2, -5)
      expect { |x| v = x; f = -> { v = nil; 3 }; v += f.(); v }.to be_same_as_ruby.over(2, -5)
      expect { |x| v = x * 1.5; f = ->(k) { v *= k }; 3.times { v -= f[2] }; v }.to be_same_as_ruby.over(2, -5)
      expect { |x| v = x; f = -> { v += 1 }; g = -> { f.() * 2 }; v += g.(); v }.to be_same_as_ruby.over(2, -5)
      expect { |x| v = x; f = -> { v += 1 }; v += apply.(f); v }.to be_same_as_ruby.over(2, -5)
      expect { |x| a = [x]; f = -> { a = [9]; [2] }; a += f.(); a }.to be_same_as_ruby.over(1)
    end
  end
end
