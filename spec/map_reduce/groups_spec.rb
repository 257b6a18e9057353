# frozen_string_literal: true

RSpec.describe Ikra::Groups do
  groups = -> { %w[the cat the dog a cat].pmap_reduce(:+, lazy: true) { |word, out| out.emit(word, 1) } }

  it "has the pairs of the Hash, in order" do
    found = groups.call
    expect(found.size).to eq 4
    expect(found["the"]).to eq 2
    expect(found["dogs"]).to be_nil
    expect(found.to_h).to eq("the" => 2, "cat" => 2, "dog" => 1, "a" => 1)
    expect(found.each.to_a).to eq found.to_h.to_a
    expect(found.map(&:first)).to eq %w[the cat dog a]
    expect(found.inspect).to eq "#<Ikra::Groups of 4>"
  end

  it "does not change with the pairs and Hashes that it gives" do
    found = groups.call
    found.each { |pair| pair << 1 }
    found.top(1).first.clear
    found.to_h.clear
    expect([found["the"], found.to_a.first, found.to_h.size, found.top(1)]).to eq [2, ["the", 2], 4, [["the", 2]]]
  end

  it "gives a Hash of what a block makes of its pairs" do
    expect(groups.call.to_h { |word, count| [word.to_sym, count] }).to eq(the: 2, cat: 2, dog: 1, a: 1)
    expect([2].pmap_reduce(lazy: true) { |x, out| out.emit(x, 1) }.to_h { |x, one| [one, x] }).to eq(1 => 2)
  end

  it "finds keys that are eql?, also where nothing combines the values" do
    [nil, :+].each do |combine|
      found = [2, 3].pmap_reduce(combine, lazy: true) { |x, out| out.emit(x, x) }
      expect([found[3], found[3.0]]).to eq [3, nil]
    end
  end

  it "is not made where the block breaks" do
    found = (0..9).pmap_reduce(:+, lazy: true) do |x, out|
      break "left" if x == 5

      out.emit(x, 1)
    end
    expect(found).to eq "left"
    plain = nil
    expect { plain = %w[a b].pmap_reduce(:+, lazy: true, unsupported: :ruby) { |x, out| out.emit(x.succ, 1) } }.to output(/plain Ruby/).to_stderr
    expect(plain).to be_a(described_class).and have_attributes(to_h: { "b" => 1, "c" => 1 })
  end

  it "goes through Marshal" do
    lists = [2, 3].pmap_reduce(lazy: true) { |x, out| out.emit(x, 1) }
    [groups.call, lists].each do |found|
      copy = Marshal.load(Marshal.dump(found)) # rubocop:disable Security/MarshalLoad
      expect(copy.to_a).to eq found.to_a
      expect(copy.map_reduce(:+) { |(key, value), out| out.emit(key, value) }).to eq found.to_h
    end
  end

  it "feeds a second pass" do
    found = groups.call.map_reduce(:+) { |(word, count), out| out.emit(word.size, count) }
    expect(found).to eq(3 => 5, 1 => 1)
  end

  it "has the greatest values, of equal ones the first" do
    expect(groups.call.top(2)).to eq [["the", 2], ["cat", 2]]
    expect(groups.call.top(0)).to eq []
    expect({ a: 1, b: 3.5, c: 3 }.top(2)).to eq [[:b, 3.5], [:c, 3]]
    many = Array.new(50) { |i| [i, i * 7 % 10] }.to_h
    greatest = many.to_a.each_with_index.sort_by { |(_key, value), place| [-value, place] }.map(&:first)
    (0..52).each { |count| expect(many.top(count)).to eq greatest.first(count) }
    expect(Array.new(200_000) { |i| [i, 1] }.to_h.top(199_999).size).to eq 199_999
    expect { { a: 1 }.top(-1) }.to raise_error(ArgumentError, /negative/)
    expect { { a: 1, b: nil }.top(1) }.to raise_error(ArgumentError, /comparison/)
  end
end

RSpec.describe Ikra::MapReduce do
  it "runs map, combine and reduce of a subclass, with its instance variables" do
    count = Class.new(described_class) do
      def initialize(base) = @base = base
      def map(x) = emit(x % @base, x).emit(:all, 1)
      def combine(one, other) = one + other
    end
    averages = Class.new(described_class) do
      def map(x)
        x.times { |i| emit(i, x) }
        other(x)
      end

      private

      def other(x) = emit(:other, x)
      def reduce(_key, values) = values.sum.to_f / values.size
    end
    backends.each do |backend|
      expect(count.new(3).run(1..10, backend: backend).to_a).to eq [[1, 22], [:all, 10], [2, 15], [0, 18]]
      expect(averages.new.run([1, 2, 3], backend: backend)).to eq(0 => 2.0, :other => 2.0, 1 => 2.5, 2 => 3.0)
    end
    expect(count.new(2).run((1..4).plazy.map { |x| x * x })).to eq(1 => 10, :all => 4, 0 => 20)
    expect(count.new(2).run(averages.new.run(1..2, lazy: true).map { |_, average| average.to_i }.to_set)).to eq(1 => 1, :all => 2, 0 => 2)
  end

  it "says what a subclass does wrong" do
    without = Class.new(described_class)
    assigning = Class.new(described_class) { def map(x) = (@last = x; emit(x, x)) }
    expect { without.new.run([1]) }.to raise_error(NoMethodError, /has no method map/)
    expect { assigning.new.run([1]) }.to raise_error(FrozenError)
    expect { without.new.emit(1, 2) }.to raise_error(ArgumentError, /outside of map/)
  end
end

RSpec.describe "groups of chains and MDArrays" do
  chains = {
    "map" => ->(list) { list.map { |x| x * 7 % 5 } },
    "select" => ->(list) { list.select(&:even?).map { |x| [x % 2, x % 3] } },
    "flat_map" => ->(list) { list.flat_map { |x| [x % 3, -x % 4] }.reject { |x| x == 1 } },
    "with_index" => ->(list) { list.with_index.map { |x, i| x * i % 4 } },
    "take_while" => ->(list) { list.take_while { |x| x < 30 }.map { |x| x / 4.0 } },
    "take" => ->(list) { list.map { |x| x % 6 }.take(20).reject(&:odd?) },
    "slices" => ->(list) { list.map { |x| x % 2 }.each_slice(2) },
    "zip" => ->(list) { list.zip([1, 2, 1]) },
    "nothing" => ->(list) { list }
  }

  chains.each do |name, chain|
    it "are Ruby's: #{name}" do
      plain = chain.call((1..50).each_entry.to_a.lazy).to_a
      backends.each do |backend|
        lazy = chain.call((1..50).plazy(backend: backend))
        expect(lazy.tally.to_a).to eq plain.tally.to_a
        expect(lazy.uniq).to eq plain.uniq
        expect(lazy.map_reduce(:+) { |x, out| out.emit(x, 1) }).to eq plain.tally
      end
    end
  end

  it "are Ruby's, by a block" do
    plain = Array.new(60) { |i| (i * 7919) % 31 }
    backends.each do |backend|
      lazy = plain.plazy(backend: backend).map { |x| x + 1 }
      expect(lazy.group_by { |x| x % 4 }.to_a).to eq plain.map(&:succ).group_by { |x| x % 4 }.to_a
      expect(lazy.uniq { |x| x % 4 }).to eq plain.map(&:succ).uniq { |x| x % 4 }
      expect(lazy.with_index.group_by { |x, i| (x + i) % 3 }).to eq plain.map(&:succ).each_with_index.group_by { |x, i| (x + i) % 3 }
    end
    expect([6, 3, 0].plazy.map { |x| x }.group_by).to be_a(Enumerator)
    expect { [6, 3, 0].plazy.map { |x| 6 / x }.tally }.to raise_error(ZeroDivisionError)
  end

  it "have the most frequent values, of equal ones the first" do
    plain = Array.new(60) { |i| (i * 7919) % 13 % 7 }
    backends.each do |backend|
      lazy = plain.plazy(backend: backend).map { |x| x + 1 }
      (0..8).each { |count| expect(lazy.top(count)).to eq plain.map(&:succ).tally.top(count) }
      expect { lazy.top(-1) }.to raise_error(ArgumentError, /negative/)
    end
  end

  it "tally the very elements" do
    list = [+"ab", +"cd", +"ab"]
    expect(list.plazy.map { |x| x }.tally.keys).to all(satisfy { |key| !key.frozen? })
  end

  it "of an MDArray have its kind, row after row" do
    { i64: [[1, 2, 3], [3, 2, 1]], f64: [[0.5, -0.0], [0.0, 0.5]], bool: [[true, false]], object: [[:a, "b"], ["b", nil]] }.each do |kind, rows|
      array = Ikra::MDArray.new(rows, dtype: kind)
      flat = rows.flatten(1)
      expect(array.tally.to_a).to eq flat.tally.to_a
      expect(array.uniq).to eq Ikra::MDArray.new(flat.uniq, dtype: kind)
      expect(array.t.tally.to_a).to eq rows.transpose.flatten(1).tally.to_a
      groups = array.group_by { |x| x == flat.first }
      expect(groups.transform_values(&:to_a)).to eq(flat.group_by { |x| x == flat.first })
      expect(groups.values.map(&:dtype)).to all eq kind
    end
    numbers = Ikra::MDArray.new([3, 1, 3])
    expect((numbers * 2).map_reduce(:+) { |x, out| out.emit(x, 1) }).to eq(6 => 2, 2 => 1)
    expect(numbers.uniq { |x| x % 2 }.to_a).to eq [3]
    expect(Ikra::MDArray.zeros(0).tally).to eq({})
    expect(Ikra::MDArray.zeros(0).uniq.size).to eq 0
  end
end
