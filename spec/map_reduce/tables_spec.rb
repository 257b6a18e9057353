# frozen_string_literal: true

require "etc"

# Pairs that kernels group while they emit them.
RSpec.describe "tables in kernels" do
  include ReduceAsRuby::Examples

  # Whether the kernel grouped the pairs.
  def in_kernel?(backend, list, combine = :+, &block)
    Ikra.explain { list.pmap_reduce(combine, backend: backend, &block) }.to_s.include?("in the kernel")
  end

  # Integers of so many kinds, from a fixed sequence; most of them are one where there is a hot key.
  def keys(count, kinds, hot)
    Array.new(count) { |i| hot && (i * 31 % 8).positive? ? 5 : (i * 7919 + i / 3) % kinds }
  end

  [0, 1, 2, 767, 999, 1000, 1001].each do |count|
    it "group #{count} pairs" do
      [1, 2, 100, 1_000_003].product([false, true]).each do |kinds, hot|
        expect(keys(count, kinds, hot)).to(reduce_as_ruby(:+) { |x, out| out.emit(x, x + 1) })
      end
    end
  end

  it "are used for Integers, Symbols, true and false" do
    names = %i[a b c d]
    {
      Integer => ->(x, out) { out.emit(x % 7 - 3, x) },
      Symbol => ->(x, out) { out.emit(names[x % 4], x) },
      TrueClass => ->(x, out) { out.emit(x.even?, x); out.emit(true, 3); out.emit(false, -1) }
    }.each_value do |block|
      expect(1..300).to(reduce_as_ruby(:+, &block))
      backends.each { |backend| expect(in_kernel?(backend, 1..300, &block)).to be true }
    end
  end

  it "compare Strings by bytes and encoding" do
    words = ["", "a", "b", "1234567", "12345678", "12345679", "a much longer String than a word", "\u00fc", "\u00fcber", "\xff"]
    words += ["a".b, "12345678".encode("US-ASCII"), "\u00fc".b, "\xff".dup.force_encoding("US-ASCII")]
    expect(words * 5).to(reduce_as_ruby(:+) { |word, out| out.emit(word, 1); out.emit("a", 2) })
    expect(words * 2).to(reduce_as_ruby(:max) { |word, out| out.emit(word.byteslice(0, 2), word.bytesize) })
    expect(Array.new(300) { |i| "word #{i % 50} of #{i % 7}" }).to(reduce_as_ruby(:+) { |text, out| text.split.each { |word| out.emit(word.upcase + word, 1) } })
    block = ->(word, out) { out.emit(word, 1) }
    backends.each { |backend| expect(in_kernel?(backend, words, &block)).to be true }
  end

  it "combine by all operators" do
    %i[+ min max & |].each do |operator|
      expect(1..300).to(reduce_as_ruby(operator) { |x, out| out.emit(x % 4, x * 0x123456789 - (1 << 40)); out.emit(-1, 1 << (x % 60)) })
    end
  end

  it "take Integers of 64 bits" do
    great = [2**63 - 1, -2**63, 0, -1, 1, 2**62, -2**62]
    expect(great * 3).to(reduce_as_ruby(:max) { |x, out| out.emit(x, x); out.emit(x ^ 1, x) })
    expect(great * 3).to(reduce_as_ruby(:+) { |x, out| out.emit(x, 1) })
  end

  it "order keys by first pairs, of several that an element emits" do
    expect(1..200).to(reduce_as_ruby(:+) { |x, out| (x % 5).times { |i| out.emit(x * 31 % 17 + i * 100, i) } })
    expect((1..200).to_a.reverse).to(reduce_as_ruby(:min) { |x, out| out.emit(-x, x) if x % 3 > 0 })
    expect(1..200).to(reduce_as_ruby(:+) { |x, out| out.emit(1, 1).emit(x, 2).emit(1, 3) })
  end

  it "take Floats, nil and keys of several kinds" do
    floats = [0.0, -0.0, 1.5, -1.5, Float::INFINITY, 1e300, -0.0, 0.0, 5e-324]
    expect(floats * 3).to(reduce_as_ruby(:+) { |x, out| out.emit(x, 1) })
    expect(floats.rotate * 3).to(reduce_as_ruby(:+) { |x, out| out.emit(x, 1); out.emit(-x, 2) })
    blocks = [
      ->(x, out) { out.emit(x / 4.0, x) },
      ->(x, out) { out.emit(nil, x) },
      ->(x, out) { out.emit(x.even? ? x % 5 : :odd, x) },
      ->(x, out) { out.emit(x.even? ? nil : (x % 3).to_f, x) },
      ->(x, out) { out.emit(x % 3, 1); out.emit((x % 3).to_f, 2); out.emit(x.even?, 3); out.emit("a", 4); out.emit(:a, 5); out.emit(nil, 6) }
    ]
    blocks.each do |block|
      expect(1..120).to(reduce_as_ruby(:+, &block))
      backends.each { |backend| expect(in_kernel?(backend, 1..120, &block)).to be true }
    end
  end

  it "keep each NaN apart" do
    block = ->(x, out) { out.emit(x % 3 == 0 ? 0.0 / 0 : x % 3 * 0.5, x) }
    expect(1..30).to(reduce_as_ruby(:+, &block))
    expect(1..30).to(reduce_as_ruby(:+) { |x, out| out.emit([x % 3 == 0 ? 0.0 / 0 : 1.0, 2], x) })
  end

  it "take arrays that the block makes" do
    words = ["", "a", "ab", "12345678", "\u00fc", "\u00fc".b, "\xff".dup.force_encoding("US-ASCII"), "a".b] * 4
    {
      1..120 => [
        ->(x, out) { out.emit([x % 3, x.even?], x) },
        ->(x, out) { out.emit([x % 3, [x % 2, [x % 5 * 0.5, -0.0 * (x % 2)]], :q, nil], x) },
        ->(x, out) { x.even? ? out.emit([x % 3], x) : out.emit(x % 3, x) },
        ->(x, out) { out.emit([], x); out.emit([[]], x); out.emit([[], []], x) },
        ->(x, out) { out.emit([x.even? ? nil : x % 3, x % 3 == 0 ? :a : "b"], x) }
      ],
      words => [
        ->(word, out) { out.emit([word, word.size], 1) },
        ->(word, out) { out.emit([word.byteslice(0, 1), word.bytesize], 1); out.emit(["#{word}!", nil], 2) }
      ]
    }.each do |source, blocks|
      blocks.each do |block|
        expect(source).to(reduce_as_ruby(:+, &block))
        backends.each { |backend| expect(in_kernel?(backend, source, &block)).to be true }
      end
    end
  end

  it "leave the Strings in a key the very objects" do
    words = Array.new(40) { |i| "word #{i % 7}" }
    backends.each do |backend|
      found = words.pmap_reduce(:+, backend: backend) { |word, out| out.emit([word, 1], 1) }
      expect(found.keys.each_with_index.all? { |key, i| key[0].equal?(words[i]) }).to be true
    end
  end

  it "find the same groups of 20000 arrays, all alike and all different" do
    [1, 1009, 20_000].each do |kinds|
      expected = (0...20_000).each_with_object(Hash.new(0)) { |x, found| found[[x % kinds, x % kinds * 0.5]] += 1 }
      (backends - %i[reference]).each do |backend|
        found = (0...20_000).pmap_reduce(:+, backend: backend) { |x, out| out.emit([x % kinds, x % kinds * 0.5], 1) }
        expect(found.to_a == expected.to_a).to be true
      end
    end
  end

  it "leave other keys and values to the host" do
    pairs = Array.new(60) { |i| [i % 3, i % 2] }
    held = pairs.pmap_reduce(:+, backend: :cpu) { |pair, out| out.emit(pair, 1) }
    expect(held.keys.each_with_index.all? { |key, i| key.equal?(pairs[i]) }).to be true
    blocks = [
      ->(x, out) { out.emit(x % 3, x.even? ? x : x / 2.0) },
      ->(x, out) { out.emit(x % 3, x); out.emit(1, x / 2.0) },
      ->(x, out) { out.emit([x % 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], 1) },
      ->(x, out) { out.emit(key = [x % 3, 1], 1); key[0] = 5 },
      ->(x, out) { out.emit(Complex(x % 3, 1), 1) }
    ]
    blocks.each do |block|
      expect(1..60).to(reduce_as_ruby(:+, &block))
      backends.each { |backend| expect(in_kernel?(backend, 1..60, &block)).to be false }
    end
    # the same block, with keys of one kind and of several
    same = proc { |x, out| out.emit(x, 1) }
    expect([1, "a", 1]).to(reduce_as_ruby(:+, &same))
    expect([1, 2, 1]).to(reduce_as_ruby(:+, &same))
  end

  # A new block, of which nothing is known yet.
  def float_block = eval("proc { |x, out| out.emit(1, x) }", binding, __FILE__, __LINE__) # rubocop:disable Style/EvalWithLocation

  # The operators that combine these Floats in the kernel, on all backends alike.
  def operators_in_kernels(values)
    %i[+ min max].select do |operator|
      expect(values).to(reduce_as_ruby(operator, &float_block))
      found = backends.map { |backend| in_kernel?(backend, values, operator, &float_block) }.uniq
      expect(found.size).to eq 1
      found.first
    end
  end

  it "combine Floats, which are added exactly" do
    values = [0.1, 0.2, 0.3, -1e9, 1e-9, 7.25, 3.0, -0.3, 1e13, -2.0**-96, Math::PI]
    blocks = [
      ->(x, out) { out.emit(x % 7, values[x % 11] * (x - 90) + 0.001) },
      ->(x, out) { out.emit("key #{x % 5}", Math.sqrt(x)) },
      ->(x, out) { out.emit([x % 3, x % 2 * 0.5], x / 7.0); out.emit([1, 0.5], -x / 3.0) },
      ->(x, out) { out.emit(x.even? ? nil : 0.0 / 0, values[x % 11]) }
    ]
    blocks.product(%i[+ min max]) do |block, operator|
      expect(0...200).to(reduce_as_ruby(operator, &block))
      backends.each { |backend| expect(in_kernel?(backend, 0...200, operator, &block)).to be true }
    end
  end

  it "leave Floats to the host whose totals they cannot tell" do
    infinity = Float::INFINITY
    [
      [[1.5, -1.5], %i[+ min max]],
      [[2.0**50, 2.0**-96, -2.0**50], %i[+ min max]],
      [[1e308, 1.0, -1e308], %i[min max]],
      [[5e-324, -5e-324, 2.2250738585072014e-308], %i[min max]],
      [[2.0**-97], %i[min max]],
      [[2.0**51], %i[min max]],
      [[infinity, 1.0], %i[min max]],
      [[infinity, -infinity], %i[min max]],
      [[0.0, 0.0], %i[+ min max]],
      [[-0.0, -0.0], []],
      [[0.0, -0.0], []],
      [[-0.0, 0.0], []],
      [[-0.0, 1.0], %i[+ max]],
      [[-1.0, -0.0], %i[+ min]]
    ].each { |values, operators| expect([values, operators_in_kernels(values)]).to eq [values, operators] }
    expect([1.0, Float::NAN]).to(reduce_as_ruby(:+, &float_block))
    %i[min max].product(backends) do |operator, backend|
      expect { [1.0, Float::NAN].pmap_reduce(operator, backend: backend, &float_block) }.to raise_error(ArgumentError, "comparison of Float with 1.0 failed")
    end
    expect([1.0, 2.0]).to(reduce_as_ruby(:&) { |x, out| out.emit(x, x) })
  end

  it "round sums of Floats once, whatever their order" do
    random = Random.new(7)
    scales = [-60..-50, -96..-60, -20..20, -48..-2, 0..0]
    lists = scales.map { |scale| Array.new(60) { random.rand(-2**53..2**53) * 2.0**random.rand(scale) } }
    lists << (lists[0] + lists[0].map { |x| -x * (1 + Float::EPSILON) }) << Array.new(60) { |i| i.even? ? 1.0 : 2.0**-53 }
    lists << Array.new(80) { |i| [1e308, 1.0, -1e308, 5e-324][i % 4] } << Array.new(30) { [random.rand(2**64)].pack("Q").unpack1("D") }
    lists.each do |list|
      expect(list).to(reduce_as_ruby(:+) { |x, out| out.emit(1, x); out.emit(x > 0, -x) })
      expect(list.shuffle(random: random)).to(reduce_as_ruby(:+) { |x, out| out.emit(x < 0.25, x) })
    end
  end

  it "add Floats of 20000 keys" do
    [1000, 1_000_003].each do |kinds|
      list = keys(40_000, kinds, false)
      groups = list.each_with_object({}) { |x, found| (found[x] ||= []) << x * 0.1 }
      expected = groups.transform_values { |values| values.sum(0r, &:to_r).to_f }
      (backends - %i[reference]).each do |backend|
        block = ->(x, out) { out.emit(x, x * 0.1) }
        expect(list.pmap_reduce(:+, backend: backend, &block).to_a == expected.to_a).to be true
        expect(in_kernel?(backend, list, &block)).to be true
      end
    end
  end

  it "count in 128 bits, and raise where a total leaves 64" do
    great = 2**62
    expect([great, great, great, -great, -great]).to(reduce_as_ruby(:+) { |x, out| out.emit(0, x) })
    backends.each do |backend|
      expect { [great, great].pmap_reduce(:+, backend: backend) { |x, out| out.emit(0, x) } }.to raise_error(Ikra::IntegerOverflow, /sum of a group/)
    end
  end

  it "leave nothing of a section that raises or is left" do
    backends.each do |backend|
      divide = -> { (0..500).pmap_reduce(:+, backend: backend) { |x, out| out.emit(x, 1); out.emit(100 / (x - 400), 1) } }
      expect(&divide).to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq 400 }
      expect((0..500).pmap_reduce(:+, backend: backend) { |x, out| break x if x > 300; out.emit(x, 1) }).to eq 301
      # and the next call begins anew
      expect((0..5).pmap_reduce(:+, backend: backend) { |x, out| out.emit(x % 2, 1) }).to eq(0 => 3, 1 => 3)
    end
  end

  it "serve reduce, order, lazy and programs as classes" do
    expect(1..90).to(reduce_as_ruby(:+, reduce: ->(key, sums) { key * 1000 + sums[0] }) { |x, out| out.emit(x % 7, x) })
    backends.each do |backend|
      sorted = [5, 3, 5].pmap_reduce(:+, order: :key, backend: backend) { |x, out| out.emit(x, 1) }
      expect(sorted.to_a).to eq [[3, 1], [5, 2]]
      groups = [5, 3, 5].pmap_reduce(:+, lazy: true, backend: backend) { |x, out| out.emit(x, 1) }
      expect(groups.map_reduce(:max, backend: backend) { |(key, count), out| out.emit(count, key) }).to eq(2 => 5, 1 => 3)
      chain = (1..100).plazy(backend: backend).select(&:odd?).map { |x| x % 10 }
      expect(chain.tally.to_a).to eq((1..100).select(&:odd?).map { |x| x % 10 }.tally.to_a)
      expect(chain.flat_map { |x| [x, x % 3] }.tally.to_a).to eq((1..100).select(&:odd?).flat_map { |x| [x % 10, x % 10 % 3] }.tally.to_a)
    end
  end

  it "split pairs by hashes where there are many keys" do
    list = keys(150_000, 1_000_003, false)
    expected = list.each_with_object(Hash.new(0)) { |x, found| found[x] += x }
    (backends - %i[reference]).each do |backend|
      found = list.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x, x) }
      expect(found.to_a == expected.to_a).to be true
    end
    told = Ikra.explain { list.pmap_reduce(:+, backend: :cpu) { |x, out| out.emit(x, x) } }.to_s
    # The table of a thread has room for 32768 keys, so many threads split nothing.
    split = Etc.nprocessors > 4 ? "" : ", \\d+ split by hashes"
    expect(told).to match(/engine :(small|hash) in the kernel, \d+ keys found in 150000 pairs#{split}/)
  end
end
