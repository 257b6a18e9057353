# frozen_string_literal: true

# Short arrays become registers, loops with few repetitions become these, and arrays of constants are a part of the
# program. None of this may be seen, whatever the names of an array and the values of a constant are.
RSpec.describe "short arrays and loops" do
  on_every_backend do
    it "keep the names of an array apart from copies" do
      expect { |i|
        a = [i, 1]
        b = a
        b[0] += 5
        c = i.odd? ? a : [2, 3]
        c[1] = 9
        (a[0] * 100) + (a[1] * 10) + c[0]
      }.to be_same_as_ruby.over(0, 1, 2, 7)
    end

    it "carry an array from one repetition to the next, and the one before" do
      expect { |i|
        a = [0, 1]
        before = a
        (i + 1).times do |k|
          before = a
          a = [a[1], a[0] + a[1] + k]
          before[0] = 100 + k
        end
        (a[0] * 1000) + (a[1] * 10) + before[0]
      }.to be_same_as_ruby.over(0, 1, 2, 5)
    end

    it "know whether there is an array yet" do
      expect { |i|
        best = nil
        5.times do |k|
          distance = ((k * 7) + i) % 11
          best = [distance, k] if best.nil? || distance < best[0]
        end
        (best[0] * 10) + best[1]
      }.to be_same_as_ruby.over(0, 3, 8)
    end

    it "have the length that they have" do
      expect { |i|
        a = i.odd? ? [1, 2] : [1, 2, i]
        b = []
        b = [i, 2] if i > 1
        (a.size * 100) + (b.size * 10) + (b[0] || 7) + (a[2] || 0)
      }.to be_same_as_ruby.over(0, 1, 2, 3)
    end

    it "hold each other" do
      expect { |i|
        row = [i, 1]
        rows = [row, [3, i], row]
        rows[0][0] += 5
        (rows[2][0] * rows[1][1]) - rows[0][1]
      }.to be_same_as_ruby.over(0, 1, 4)
    end

    it "are taken by an index that is not known" do
      expect { |i|
        a = [i, 5, 7]
        a[i % 3] += 1
        (a[0] * 100) + (a[(i + 1) % 3] * 10) + a[-1]
      }.to be_same_as_ruby.over(0, 1, 2, 3)
    end

    it "raise in the repetition in which Ruby raises" do
      expect { |i|
        sum = 0
        (-1..1).each { |k| sum += 12 / (i - k) }
        sum
      }.to be_same_as_ruby.over(2, 3, 7)
      expect { |i| (-1..1).sum { |k| 12 / (i - k) } }.to be_same_as_ruby.over(5, 0)
    end

    it "leave a loop where Ruby leaves it" do
      expect { |i|
        sum = 0
        (0...5).each do |k|
          next if k == 2
          break if k * k > i

          sum += k.even? ? k : 10
        end
        found = [1, 2, 3].find { |k| ((i + k) % 4).zero? }
        (sum * 10) + (found || 9)
      }.to be_same_as_ruby.over(0, 1, 4, 9, 30)
    end
  end

  describe "constants" do
    let(:elements) { [0, 1, 2, 3] }

    def same(&) = expect(elements.pmap(&)).to eq(elements.map(&))

    it "may change between calls, in values, lengths and kinds" do
      stub_const("SHORT_PAIRS", [[-1, 0], [0, 1]])
      run = -> { same { |i| SHORT_PAIRS.sum { |a, b| ((i + a) % 5 * 10) + ((i + b) % 3) } } }
      run.call
      SHORT_PAIRS[0][1] = 50
      run.call
      SHORT_PAIRS << [7, 8]
      run.call
      SHORT_PAIRS[1] = [2, 2, 2]
      run.call
      SHORT_PAIRS[1] = [2**40, 1]
      run.call
      SHORT_PAIRS.clear
      run.call
    end

    it "may be written by a section, and held elsewhere" do
      stub_const("SHORT_NUMBERS", [4, 5])
      numbers = SHORT_NUMBERS
      same { |i| (SHORT_NUMBERS[0] * 10) + numbers[1] + i }
      elements.peach { |i| SHORT_NUMBERS[0] = 8 if i == 3 }
      expect(SHORT_NUMBERS).to eq [8, 5]
      same { |i| (SHORT_NUMBERS[0] * 10) + numbers[1] + i }
    end

    it "that are the same leave no array in the program" do
      stub_const("SHORT_PAIRS", [[-1, 0], [0, 1]])
      block = ->(i) { SHORT_PAIRS.sum { |a, b| (i + a) * (i + b) } }
      code = Ikra.explain { elements.pmap(&block) }.sections.last.code(:ir)
      expect(code).to match(/^stride c\d+ is \[-1, 0, 0, 1\]$/)
      expect(code).not_to include "load elements"
    end
  end
end
