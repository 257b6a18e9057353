# frozen_string_literal: true

# Sums of Integers whose keys are in a small range have a cell for each key, the range of which is learned.
RSpec.describe "cells of keys in a small range" do
  def expected(pairs)
    pairs.each_with_object({}) { |(key, value), sums| sums[key] = (sums[key] || 0) + value }
  end

  lists = {
    "from 0 on" => ->(i) { [i * 7919 % 768, 1] },
    "around 0" => ->(i) { [(i * 7919 % 1024) - 512, i] },
    "years" => ->(i) { [1990 + (i * 31 % 40), -i] },
    "at the ends of 64 bits" => ->(i) { [i.even? ? 0x7fffffffffffffff - (i % 7) : -0x7fffffffffffffff - 1 + (i % 5), 3] },
    "beyond the cells at times" => ->(i) { [i % 97 == 0 ? i * 1000 : i % 300, 2**40] },
    "all different" => ->(i) { [i * 5000, 1] },
    "with values of any size" => ->(i) { [i % 3, (i / 3).even? ? (2**62) - i : -(2**62)] }
  }

  lists.each do |name, pair|
    it "have Ruby's sums: #{name}" do
      backends.each do |backend|
        run = ->(range) { range.pmap_reduce(:+, backend: backend) { |i, out| out.emit(*pair.call(i)) } }
        # twice with the same keys, then others, and those again
        [0...3000, 0...3000, 5...9, 0...2000, 0...0, 7...3000].each do |range|
          expect(run.call(range).to_a).to eq expected(range.map(&pair)).to_a
        end
      end
    end
  end

  it "follow keys that move from call to call" do
    backends.each do |backend|
      [0, 1000, 5, -2000, 10**15, 1023, 1].each do |base|
        found = (0...2000).pmap_reduce(:+, backend: backend) { |i, out| out.emit(base + (i * 31 % 900), i) }
        expect(found.to_a).to eq expected((0...2000).map { |i| [base + (i * 31 % 900), i] }).to_a
      end
    end
  end

  it "have sums beyond 64 bits on the way, and raise for those at the end" do
    backends.each do |backend|
      add = ->(list) { list.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x & 1, x) } }
      huge = (2**62) + 1
      expect(add.call([huge, huge, -huge, 2, -huge, huge])).to eq(1 => huge, 0 => 2)
      expect { add.call([huge, huge, 4]) }.to raise_error(Ikra::IntegerOverflow)
      expect(add.call([huge, 4])).to eq(1 => huge, 0 => 4)
    end
  end

  it "have Symbols, true and false, and captured Hashes, in order" do
    words = %i[red green blue]
    backends.each do |backend|
      found = (0...900).pmap_reduce(:+, backend: backend) { |i, out| out.emit(words[i * i % 3], 1) }
      expect(found.to_a).to eq (0...900).map { |i| words[i * i % 3] }.tally.to_a
      expect((0...900).pmap_reduce(:+, backend: backend) { |i, out| out.emit(i % 7 == 3, i) }).to eq(expected((0...900).map { |i| [i % 7 == 3, i] }))
      counts = Hash.new(0)
      2.times { (0...900).peach(backend: backend) { |i| counts[i * 31 % 53] += i } }
      expect(counts.to_a).to eq expected(2.times.flat_map { (0...900).map { |i| [i * 31 % 53, i] } }).to_a
    end
  end

  it "leave other operators, Floats and a tally as they are" do
    backends.each do |backend|
      list = Array.new(500) { |i| i * 7919 % 101 }
      %i[min max & |].each do |operator|
        groups = list.each_with_index.group_by { |x, _| x % 9 }.transform_values { |pairs| pairs.map(&:last).then { |all|
 %i[min max].include?(operator) ? all.public_send(operator) : all.reduce(operator) } }
        expect((0...500).pmap_reduce(operator, backend: backend) { |i, out| out.emit(list[i] % 9, i) }.to_a).to eq groups.to_a
      end
      expect(list.plazy(backend: backend).map { |x| x % 9 }.tally.to_a).to eq list.map { |x| x % 9 }.tally.to_a
      expect(list.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x % 9, x * 0.5) }.to_a).to eq(list.group_by { |x| x % 9 }.transform_values { |all| all.sum / 2.0 }.to_a)
    end
  end
end
