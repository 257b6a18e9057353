# frozen_string_literal: true

RSpec.describe "Loops" do
  on_every_backend do
    it "has while and until" do
      expect do |x|
        steps = 0
        n = x
        while n > 1
          n = n.even? ? n / 2 : n * 3 + 1
          steps += 1
        end
        until steps % 4 == 0 do steps += 1 end
        steps
      end.to be_same_as_ruby.over(-1, 0, 1, 7, 27, 97)
    end

    it "runs a body first where the condition stands behind it" do
      expect do |x|
        n = 0
        begin
          n += 1
        end while n < x
        begin
          n += 10
        end until n > 3
        n += 1 while n < 15
        n -= 1 until n <= 13
        n
      end.to be_same_as_ruby.over(0, 1, 5)
    end

    it "gives nil, or what break gives" do
      expect { |x| while x < 0 do x += 1 end }.to be_same_as_ruby.over(-1, 0)
      expect { |x| while true do break x * 2 if x > 3; x += 1 end }.to be_same_as_ruby.over(0, 9)
      expect { |x| until false do break if x > 3; x += 1 end }.to be_same_as_ruby.over(0, 9)
    end

    it "has loop" do
      expect do |x|
        n = x
        found = loop do
          n += 7
          break n if n % 5 == 0
        end
        found + n
      end.to be_same_as_ruby.over(0, 1, 2, -1000)
    end

    it "has for over Ranges and Arrays" do
      values = [3, 1, 4]
      expect do |x|
        sum = 0
        for i in 0..x
          sum += i
        end
        for i in 1...x do sum += 100 * i end
        for v in values
          next if v == 1
          sum += v
        end
        sum + i + v
      end.to be_same_as_ruby.over(1, 2, 5)
    end

    it "has break and next in loops" do
      expect do |x|
        n = sum = 0
        while n < 20
          n += 1
          next if n.even?
          break if n > x
          sum += n
        end
        sum * 100 + n
      end.to be_same_as_ruby.over(0, 5, 11, 100)
    end

    it "nests loops" do
      expect do |x|
        count = 0
        i = 0
        while i < x
          j = i
          until j >= x
            k = 0
            loop do
              k += 1
              break if k > j
              next if k == 2
              count += 1
            end
            j += 1
          end
          i += 1
        end
        count
      end.to be_same_as_ruby.over(0, 1, 4, 7)
    end

    it "may change a variable's type from round to round" do
      expect do |x|
        v = x
        3.times { |i| v = i.even? ? v / 2.0 : v.to_i }
        v
      end.to be_same_as_ruby.over(0, 7, 100)
    end
  end
end
