# frozen_string_literal: true

RSpec.describe "the engines of pmap_reduce" do
  include ReduceAsRuby::Examples

  sizes = [0, 1, 2, 767, 999, 1000, 1001, 40_000]
  keys = {
    "Integers in a small range" => ->(i) { i % 300 - 150 },
    "Integers far apart" => ->(i) { (i % 300 - 150) * 10_000_000_019 },
    "Floats" => ->(i) { (i % 300 - 150) / 4.0 },
    "short Strings" => ->(i) { "k#{i % 300}" },
    "long Strings" => ->(i) { "a key of many bytes #{i % 300}" }
  }
  spread = { "uniform" => ->(i) { i * 7919 % 40_009 }, "one hot key" => ->(i) { i % 8 == 0 ? i * 7919 % 40_009 : 5 } }

  # The numbers of a list's keys, each with its value.
  pairs = lambda do |size, key, order|
    Array.new(size) { |i| [key.(order.(i)), (i * 7919) % 2003 - 1000] }
  end

  keys.each do |name, key|
    it "give Ruby's groups of #{name}" do
      sizes.product(spread.values) do |size, order|
        list = pairs.(size, key, order)
        %i[+ min max].each do |operator|
          expect(list).to(reduce_as_ruby(operator, on: :cpu) { |pair, out| out.emit(pair[0], pair[1]) })
        end
        %i[small hash group].each do |engine|
          expect(list).to(reduce_as_ruby(:+, on: :cpu, engine: engine) { |pair, out| out.emit(pair[0], pair[1]) })
        end
        expect(list.map(&:first).ptally.to_a).to eq list.map(&:first).tally.to_a
      end
    end
  end

  it "give the same on every backend" do
    list = pairs.(999, keys["Integers in a small range"], spread["uniform"])
    %i[direct small hash group].each do |engine|
      expect(list).to(reduce_as_ruby(:+, engine: engine) { |pair, out| out.emit(pair[0], pair[1]) })
    end
    expect(list).to(reduce_as_ruby(engine: :append) { |pair, out| out.emit(pair[0], pair[1]) })
  end

  it "count keys that all differ" do
    [1000, 40_000].each do |size|
      list = Array.new(size) { |i| i * 7919 % 1_000_003 }
      %i[small hash].each do |engine|
        expect(list).to(reduce_as_ruby(:+, on: :cpu, engine: engine) { |x, out| out.emit(x, 1) })
      end
      expect(list.ptally).to eq list.tally
      texts = list.map(&:to_s)
      expect(texts.ptally.to_a).to eq texts.tally.to_a
    end
  end

  it "combine Integers by all operators" do
    list = Array.new(2000) { |i| [i % 7, (i * 2_654_435_761_987) % (1 << 50) - (1 << 49)] }
    %i[+ min max & |].each do |operator|
      %i[direct small hash group].each do |engine|
        expect(list).to(reduce_as_ruby(operator, on: :cpu, engine: engine) { |pair, out| out.emit(pair[0], pair[1]) })
      end
    end
    expect([-(2**63), 2**63 - 1, -1]).to(reduce_as_ruby(:+, engine: :small) { |x, out| out.emit(0, x) })
    expect { [2**62, 2**62].pmap_reduce(:+, backend: :cpu, engine: :hash) { |x, out| out.emit(0, x) } }
      .to raise_error(Ikra::IntegerOverflow, /sum of a group/)
  end

  it "combine Integers also after the block has met values of several kinds" do
    greatest = ->(a, b) { [a, b].max }
    # values of one kind are a buffer, and only a block that emits no others has such values
    expect(1..6).to(reduce_as_ruby(greatest, engine: :group) { |x, out| out.emit(x % 2, x == 3 ? nil : x) })
    expect(1..20).to(reduce_as_ruby(greatest, engine: :group) { |x, out| out.emit(x % 3, -x) })
    expect(1..20).to(reduce_as_ruby(greatest, engine: :group) { |x, out| out.emit(x % 3, x * 0.5) })
    expect(1..20).to(reduce_as_ruby(greatest, engine: :group) { |x, out| out.emit(x % 3, x.odd? ? x : x * 0.5) })
    expect(1..20).to(reduce_as_ruby(greatest, engine: :group) { |x, out| out.emit(x % 3, x * x) })
  end

  it "find what monitoring did not see" do
    sorted = Array.new(60_000) { |i| i / 3 }
    behind = Array.new(60_000) { |i| i.between?(400, 900) ? i + 1_000_000 : 3 }
    [sorted, behind].each do |list|
      expect(list).to(reduce_as_ruby(:+, on: :cpu) { |x, out| out.emit(x, 1) })
      expect(list).to(reduce_as_ruby(:max, on: :cpu, engine: :small) { |x, out| out.emit(x, x) })
      expect(list.ptally.to_a).to eq list.tally.to_a
    end
  end

  it "tally what only Ruby can compare, and copy no element" do
    mixed = ["a", :a, 1, 1.0, nil, true, 2**70, "b".b, [1], "a"] * 3
    expect(mixed.ptally.to_a).to eq mixed.tally.to_a
    expect([1, :a, nil, true, 1, :a, -1].ptally.to_a).to eq [[1, 2], [:a, 2], [nil, 1], [true, 1], [-1, 1]]
    expect([0.0, -0.0, 1.5, 0.0].ptally.to_a).to eq [0.0, -0.0, 1.5, 0.0].tally.to_a
    nan = Float::NAN
    expect([nan, 1.0, nan].ptally.size).to eq [nan, 1.0, nan].tally.size
    texts = [+"a", +"ü", +"a", +"a long String, not short"]
    expect(texts.ptally.keys.zip(texts.values_at(0, 1, 3))).to all(satisfy { |one, other| one.equal?(other) && !one.frozen? })
    binary = ["\xff", "\xff".b, "\xff"]
    expect(binary.ptally.to_a).to eq binary.tally.to_a
    own = Class.new(String) { def hash = 1 }
    odd = [own.new("x"), "x", own.new("x")]
    expect(odd.ptally.to_a).to eq odd.tally.to_a
  end

  it "keep keys apart whose Strings the kernel made, or took from the program" do
    words = Array.new(3000) { |i| "word number #{i % 50}" }
    %i[small hash group].each do |engine|
      expect(words).to(reduce_as_ruby(:+, on: :cpu, engine: engine) { |w, out| out.emit(w, 1) })
      expect(words).to(reduce_as_ruby(:+, on: :cpu, engine: engine) { |w, out| out.emit(w[0, 13], 1); out.emit("all", 2) })
    end
    expect(words).to(reduce_as_ruby(:+, on: :cpu) { |w, out| out.emit(w, 1); out.emit("word number 1", 1) })
    expect(words).to(reduce_as_ruby(:+, on: :cpu) { |w, out| out.emit(w.size > 13 ? :long : :short, w.size) })
  end

  it "sum Floats exactly" do
    list = Array.new(5000) { |i| [i % 40, (i % 3 - 1) * 1e16 + i / 7.0] }
    expect(list).to(reduce_as_ruby(:+) { |pair, out| out.emit(pair[0], pair[1]) })
  end

  it "are refused where they cannot run" do
    run = ->(combine = nil, **more, &block) { [1, 2].pmap_reduce(combine, backend: :cpu, **more, &(block || ->(x, out) { out.emit(x, 1) })) }
    expect { run.(:+, engine: :sort) }.to raise_error(ArgumentError, /:sort is none of :direct, :small, :hash, :group, :append/)
    expect { run.(:+, engine: :append) }.to raise_error(ArgumentError, /:append gives all pairs/)
    expect { run.(engine: :hash) }.to raise_error(ArgumentError, /without combine and reduce/)
    expect { run.(->(a, b) { a - b }, engine: :hash) }.to raise_error(ArgumentError, /combine must be one of/)
    expect { run.(:+, engine: :direct) { |x, out| out.emit(x.to_s, 1) } }.to raise_error(ArgumentError, /:direct cannot run this: it needs keys that are Integers/)
    expect { run.(:+, engine: :direct) { |x, out| out.emit(x << 40, 1) } }.to raise_error(ArgumentError, /small range/)
    expect { run.(:min, engine: :hash) { |x, out| out.emit(x, 1.5) } }.to raise_error(ArgumentError, /it needs values that are Integers; without engine:/)
    expect { run.(:+, engine: :hash) { |x, out| out.emit([x], 1) } }.to raise_error(ArgumentError, /only Ruby's own Hash/)
  end

  it "are told by Ikra.explain" do
    list = Array.new(50_000) { |i| i % 100 }
    told = Ikra.explain { list.pmap_reduce(:+, backend: :cpu) { |x, out| out.emit(x, 1) } }.to_s
    expect(told).to match(/engine :direct in the kernel, 100 keys found in 50000 pairs, 0 split by hashes/)
    told = Ikra.explain { list.pmap_reduce(:+, backend: :cpu) { |x, out| out.emit(x * 50, 1) } }.to_s
    expect(told).to match(/engine :small in the kernel, 100 keys found in 50000 pairs, 0 split by hashes/)
    told = Ikra.explain { list.pmap_reduce(:+, backend: :cpu) { |x, out| out.emit(x % 2 << 20 | x, 1); out.emit(x * 0x1234567, 1) } }.to_s
    expect(told).to match(/engine :small in the kernel, 199 keys found in 100000 pairs/)
    told = Ikra.explain { list.pmap_reduce(:+, backend: :cpu, engine: :direct) { |x, out| out.emit(x, 1) } }.to_s
    expect(told).to match(/engine :direct, 100 keys found: \d+ elements seen, about \d+ keys in all, from 0 to 99/)
  end

  it "serve chains, and MDArrays" do
    list = Array.new(3000) { |i| i * 31 % 97 }
    chain = list.plazy(backend: :cpu).map { |x| x + 1 }
    mapped = list.map { |x| x + 1 }
    expect(chain.tally.to_a).to eq mapped.tally.to_a
    expect(chain.uniq.to_a).to eq mapped.uniq
    expect(chain.uniq { |x| x % 10 }.to_a).to eq(mapped.uniq { |x| x % 10 })
    expect(chain.group_by { |x| x % 10 }.to_a).to eq(mapped.group_by { |x| x % 10 }.to_a)
    expect(chain.map_reduce(:max, engine: :hash) { |x, out| out.emit(x % 10, x) }).to eq(mapped.group_by { |x| x % 10 }.transform_values(&:max))
    words = list.plazy(backend: :cpu).map { |x| "w#{x}" }
    expect(words.tally.to_a).to eq list.map { |x| "w#{x}" }.tally.to_a
    expect(Ikra::MDArray.new([[1, 2], [2, 1]]).map_reduce(:+, engine: :small) { |x, out| out.emit(x, 1) }).to eq(1 => 2, 2 => 2)
  end
end
