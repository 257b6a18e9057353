# frozen_string_literal: true

module MadeHashes
  Spot = Struct.new(:x, :y)

  # An object with a Hash of its own.
  class Counter
    attr_accessor :counts, :size

    def initialize(size)
      @size = size
      @counts = {}
    end

    def add(key) = @counts[key] = (@counts[key] || 0) + 1
  end

  # An object with a hash of its own.
  class Keyed
    attr_reader :id

    def initialize(id) = @id = id
    def hash = id.hash
    def eql?(other) = id == other.id
  end

  WORDS = %w[the cat the dog a cat the].freeze

  # Keys of one kind, of which some are equal.
  KEYS = {
    integers: [*0..12, -1, 2**40, 2**40 + 1, -2**62],
    floats: [0.0, -0.0, 1.0, 2.5, 1e300, -1e-300, Float::INFINITY],
    numbers: [1, 1.0, 0, 0.0, -0.0, 2, 2.0, 7, 2**53, (2**53).to_f],
    symbols: %i[a b c d e f g h i j],
    strings: ["", "a", "b", "ab", "ba", "é", "\xe9", "long enough to be another kind of String", "12", "21", "a\0"],
    units: [nil, true, false, 0, :nil, "nil"],
    tuples: [[1, 2], [2, 1], [], [1], [[1], 2], [1.0, 2], [nil, "a"], [:a, "a"]],
    structs: [Spot.new(1, 2), Spot.new(2, 1), Spot.new(1, 2.0), Spot.new([1], "x"), 5],
    all: [1, 1.0, "1", :a, "a", nil, true, [1], [1.0], Spot.new(1, nil), ["a", [:b]], 2.5, -1, false]
  }.freeze
  OPERATIONS = %i[set set set get delete key fetch add size first default walk].freeze

  # A list of operations, each with a key and a value.
  def self.program(random, keys)
    Array.new(random.rand(60)) { [OPERATIONS.sample(random: random), keys.sample(random: random), random.rand(100)] }
  end
end

RSpec.describe "Hashes that a block makes" do
  on_every_backend do
    it "have the keys and values that they are given, in that order" do
      expect { |n| h = {}; n.times { |i| h[i % 7] = i }; [h.size, h.length, h.empty?, h[3], h.keys, h.values, h.to_a, h] }.to be_same_as_ruby.over(0, 1, 5, 30)
      expect { |k| h = { 1 => 2, k => :k, "x" => 4 }; [h[k], h[1], h.key?("x"), h.include?(k), h.size, h] }.to be_same_as_ruby.over(1, 2.5, :a, nil, "x", true, [1, "z"])
      expect { |x| h = {}; h.store(x, 1); [h, h.has_key?(0), h.member?(0.0)] }.to be_same_as_ruby.over(0, 0.0, -0.0)
      expect { |_| [{}, Hash.new, Hash.new(3)] }.to be_same_as_ruby.over(1)
    end

    it "have defaults" do
      expect { |text| h = Hash.new(0); text.each_char { |c| h[c] += 1 }; [h, h["~"], h.fetch("a", 9), h.default] }.to be_same_as_ruby.over("abca", "", "zzz")
      expect { |n| h = Hash.new { |hash, k| hash[k] = k * n }; [h[3], h[4], h[3], h.size, h.fetch(9, nil), h.to_a] }.to be_same_as_ruby.over(1, 2)
      expect { |n| h = Hash.new { |_, k| k * n }; [h[3], h.size, h.dig(2), h.key?(3)] }.to be_same_as_ruby.over(1, 2)
      expect { |n| h = {}; n.times { |i| h[i % 2] ||= i; h[:n] = (h[:n] || 0) + i }; h }.to be_same_as_ruby.over(0, 5)
      made = [5].pmap(backend:) { |n| Hash.new(n).merge!({ n => 1 }) }.first
      expect([made[7], made.default]).to eq [5, 5]
    end

    it "count, group and pair" do
      expect { |n| (0...n).each_with_object(Hash.new(0)) { |i, h| h[i % 3] += i } }.to be_same_as_ruby.over(0, 10)
      expect { |n| MadeHashes::WORDS.take(n).tally }.to be_same_as_ruby.over(0, 3, 7)
      expect { |list| [list.tally, list.group_by { |x| x }] }.to be_same_as_ruby.over([[1, 2, 1.0, 1, nil], [], %w[a b a]])
      expect { |n| [(1..n).group_by { |i| i % 3 }, (1..n).to_h { |i| [i, i * 0.5] }, [[1, :a], [n, "x"]].to_h, [n].zip([4]).to_h] }.to be_same_as_ruby.over(0, 1, 10)
      expect { |n| g = MadeHashes::WORDS.group_by { |w| w.size > n ? "long" : :short }; [g.keys, g.map { |k, v| [k, v.size] }, g] }.to be_same_as_ruby.over(1, 3)
      made = %w[a].pmap(backend:) { |x| [x + "b", x + "b"].tally }
      expect([made, made[0].keys[0].frozen?]).to eq [[{ "ab" => 2 }], false]
    end

    it "raise what Ruby raises" do
      expect { |x| h = { 1 => 2 }; h.fetch(x) }.to be_same_as_ruby.over(1, 2, nil)
      expect { |x| h = { 1 => x }; h.each { |k, v| h[k + v] = 1 } }.to be_same_as_ruby.over(0, 1)
      expect { |x| h = { 1 => x }; h.min_by { |k, v| h[k + v] = 1 } }.to be_same_as_ruby.over(0, 1)
      expect { |x| h = { 1 => 2 }; begin; h.each { |k, v| h[k + v] = v }; rescue RuntimeError; h[x] = 5; end; h }.to be_same_as_ruby.over(1, 4)
      expect { |x| h = {}; h[x] + 1 }.to be_same_as_ruby.over(1)
    end

    it "are walked through, and left" do
      expect do |n|
        h = {}
        n.times { |i| h[i * 3] = i * 1.5 }
        s = 0
        h.each { |k, v| s += k * v }
        h.each_pair { |pair| s += pair[0] }
        h.each_key { |k| break if k > 30; s += k }
        h.each_value { |v| s += v }
        h[-1] = 1
        h.each { |k, v| h[k] = v + 1; h.delete(k + 3) if k.even? }
        [s, h]
      end.to be_same_as_ruby.over(1, 5, 40)
      expect { |n| h = { n => 2 }; h.transform_values { |v| h[9] = v; v }; h }.to be_same_as_ruby.over(4)
    end

    it "lose keys" do
      expect { |n| h = { 1 => 2, 2 => 5.5, n => 7 }; [h.delete(n), h.delete(99), h.delete(55) { |k| k + 1 }, h.size, h] }.to be_same_as_ruby.over(1, 2, 3)
      expect { |n| h = {}; n.times { |i| h[i] = i; h.delete(i - 3); h[i / 2] = 1 if i % 5 == 0 }; [h, h.size, h.first, h.first(2), h.shift] }.to be_same_as_ruby.over(0, 2, 50)
      expect do |n|
        h = (0..9).to_h { |i| [i, i * n] }
        h.delete_if { |_, v| v.odd? }
        lost = [h.reject! { |k, _| k == 77 }, h.select! { |k, _| k < 7 }.nil?]
        h.keep_if { |k, _| k != 2 }
        [lost, h.dup, h.shift, h.compact, h.clear, h.shift]
      end.to be_same_as_ruby.over(1, 4)
    end

    it "become others" do
      expect do |n|
        h = (1..6).to_h { |i| [i, i * i] }
        [
          h.select { |_, v| v > n * 4 }, h.reject { |k, _| k == n }, h.filter { |k| k == 1 }, h.transform_values { |v| v * 0.5 }, h.transform_keys { |k| k % 4 }, h.invert,
          h.to_h { |k, v| [v, k] }, h.slice(1, 9), h.except(1, 2), h.to_h.equal?(h), h.dup.equal?(h)
        ]
      end.to be_same_as_ruby.over(1, 3)
      expect do |n|
        h = { a: n, b: 2.5 }
        other = { b: 1, c: n }
        [h.merge(other), h.merge(other) { |_, a, b| a + b }, h.merge, h.merge!(other), h.update({ a: 4 }) { |k, a, b| k == :a ? a * b : 0 }, h, h.compact, { n => nil }.compact]
      end.to be_same_as_ruby.over(1, 3)
      hash = { 1 => 2, 3 => 4 }
      expect do |n|
        [
          hash.select { |k, _| k == n }, hash.transform_values { |v| v + n }, hash.merge({ n => 0 }), hash.invert, hash.group_by { |_, v| v > 2 }, hash.dup, n == 1 ? hash : { n => 1 },
          { n => 2 } == hash, { n => 2, 3 => 4 } == hash
        ]
      end.to be_same_as_ruby.over(1, 3)
    end

    it "are merged, compared, and made of others" do
      expect do |n|
        h = { a: n, b: 2 }
        other = { b: 1, c: n }
        more = { a: 5, d: 1 }
        h.default = n
        [
          { **h, b: 3 }, { b: 4, **h, "x" => n, **other }, { **h }, h.merge(other, more), h.merge(other, more, { e: 1 }) { |_, a, b| a * 10 + b }, h.merge(b: 2, e: n),
          h.merge("k" => n, n => 1, **other), h.merge({ q: 1 }, r: 2), h.merge(a: 7) { |k, a, b| k == :a ? a + b : 0 }, h[:z],
          h <= h, h < h, h > { a: 1 }, { b: 2 } <= h, h >= other, h < { a: n, b: 2, c: 0 }, h.fetch_values(:b, :a), h.fetch_values(:z) { |k| k }
        ]
      end.to be_same_as_ruby.over(1, 3)
      expect do |n|
        h = { a: n, b: nil }
        h.merge!(c: 2, d: 3)
        h.update({ b: n }, { e: nil }, { f: 1 })
        h.merge!({ a: 1 }, { c: 1 }) { |_, a, b| a + b }
        all = [h.compact!.equal?(h), h.compact!, h.transform_values!(&:succ).equal?(h)]
        [all, h, h.transform_keys({ a: :x, c: 4 }), h.transform_keys(a: :y), h.transform_keys({ a: 1 }) { |k| [k] }, h.each_key.to_a, h.each_value.sum, h.each_pair.map { |_, v|
 v }, h.each_value.with_index.to_a]
      end.to be_same_as_ruby.over(1, 3)
      expect { |text| [{ 1 => 2 }.merge(text => text.size), text.each_char.with_object(Hash.new(0)) { |c, h| h[c] += 1 }] }.to be_same_as_ruby.over("a bb a", "")
      expect { |n| { n => 1 }.fetch_values(n, 2) }.to be_same_as_ruby.over(1, 2)
    end

    # Each time a new one of the one before, which must have its class: otherwise types would never reach a fixpoint.
    it "are made of each other in loops" do
      expect do |n|
        a, b, c, d, e = { n => 1 }, { n => 1, 7 => 2 }, { 5 => 2 }, { n => 1 }, Hash.new(0)
        3.times do |i|
          a = a.merge({ i => n })
          b = b.select { |key, _| key > 0 }.transform_values { |value| value * 0.5 }
          c, d = d.invert, c.reject { |_, value| value > 3 }
          e = e.dup
          e[n] += i
        end
        [a, b, c, d, e, [1, n, n].reduce({}) { |counts, x| counts.merge({ x => (counts[x] || 0) + 1 }) }]
      end.to be_same_as_ruby.over(1, 5, 9)
    end

    it "have lists that grow" do
      expect do |n|
        h = {}
        g = Hash.new { |hash, k| hash[k] = [] }
        f = { 0 => [], 1 => [n] }
        e = {}
        n.times do |i|
          (h[i % 3] ||= []) << i
          g[i % 2 == 0 ? :even : "odd"] << i * 0.5 << nil
          f[i % 2].push(f.size, i)
          e[i % 4] ||= []
          e[i % 4] << [i, i.to_s]
          e[i] = [i] if i > 6
          h.delete(2) if i == 5
        end
        [h, g.to_a, f, e, h.map { |k, v| [k, v.size] }, g.sum { |_, v| v.size }, e[1], h.transform_values(&:sum), h.merge(f), h.values_at(0, 7)]
      end.to be_same_as_ruby.over(0, 1, 9, 40)
      expect { |n| n.times.each_with_object({}) { |i, h| (h[i % 2] ||= []) << i } }.to be_same_as_ruby.over(0, 5)
      expect { |n| h = Hash.new { |hash, k| hash[k] = [] }; h[n] << 1; x = (h[n + 1] << 2); [x, h.to_a, h[9]] }.to be_same_as_ruby.over(1)
      expect { |n| c = MadeHashes::Counter.new(n); n.times { |i| (c.counts[i % 3] ||= []) << i }; c.counts }.to be_same_as_ruby.over(5, 12)
      expect { |n| h = { 1 => [2] }; h[n] << 3; h }.to be_same_as_ruby.over(1, 2)
      expect { |n| h = { 1 => 2, 2 => nil }; h[n] << 3 }.to be_same_as_ruby.over(1, 2)
    end

    it "group what generated programs append" do
      random = Random.new(52)
      MadeHashes::KEYS.each_value do |keys|
        programs = Array.new(15) { Array.new(random.rand(50)) { [keys.sample(random: random), random.rand(6), random.rand(100)] } }
        expect do |program|
          h = {}
          g = Hash.new { |hash, k| hash[k] = [] }
          program.each do |key, operation, value|
            case operation
            when 0 then h.delete(key)
            when 1 then h[key] = []
            when 2 then g[key].push(value, operation)
            else (h[key] ||= []) << value
            end
          end
          [h, g.to_a]
        end.to be_same_as_ruby.over(programs)
      end
    end

    it "refuse what appends to a list that others may hold" do
      holders = {
        "a variable" => ->(x) { h = { 0 => [] }; list = h[0]; h[0] << x; list },
        "an array" => ->(x) { h = { 0 => [] }; all = h.values; h[0] << x; all },
        "a block" => ->(x) { h = { 0 => [] }; h.each { |k, list| h[k] << x; h[k] = list } },
        "another Hash" => ->(x) { h = { 0 => [] }; g = h.dup; g[0] << x; h },
        "the program" => ->(x) { list = [x]; h = { 0 => list }; h[0] << x; list },
        "its key" => ->(x) { h = {}; list = h[0] = []; h[0] << x; list },
        "a value" => ->(x) { h = Hash.new { |hash, k| list = []; hash[k] = list; hash[1] = list }; h[0] << x; h[1] },
        "the call" => ->(x) { h = { 0 => [] }; list = (h[0] << x); h[0] << x; list }
      }
      holders.each do |name, block|
        expect { [1].pmap(backend:, &block) }.to raise_error(Ikra::CompileError, /only before they are read/), name
      end
    end

    it "have the methods of Enumerable" do
      expect do |n|
        h = { 1 => n, 2 => 4, 3 => 0 }
        [
          h.min_by { |_, v| v }, h.max_by { |_, v| v }, h.min_by(2) { |_, v| -v }, h.sort_by { |k, v| [-v, k] }, h.sum { |k, v| k * v }, h.count { |_, v| v > 1 }, h.find { |_, v| v == 4 },
          h.any? { |_, v| v == n }, h.all? { |k, v| k <= v }, h.none?, h.partition { |k, _| k < 3 }, h.map { |k, v| k + v }, h.flat_map { |k, v| [k, v] }, h.filter_map { |k, v| k if v > 1 }
        ]
      end.to be_same_as_ruby.over(1, 9)
      expect do |n|
        h = { a: 1, b: n }
        [
          h.each_with_index.map { |(_, v), i| v * i }, h.each_with_object([]) { |(k, _), list| list << k }, h.reduce(0) { |s, (_, v)| s + v }, h.sort_by { |_, v| -v }.to_h, h.zip([1, 2]),
          h.each_slice(1).to_a, h.map(&:last), h.values_at(:a, :z), h.key(n), h.value?(1), h.dig(:a), h.each_with_index.to_a
        ]
      end.to be_same_as_ruby.over(1, 9)
      expect { |n| case { a: n, b: [1] }; in { a: Integer => x, b: [y] } then [x, y]; else 0; end }.to be_same_as_ruby.over(1, 2.5)
    end

    it "are what other values are made of" do
      expect { |n| h = {}; n.times { |i| h[i] = { i.to_s => [{ i => :q }] } }; [h, h, {}] }.to be_same_as_ruby.over(0, 5)
      expect { |n| c = MadeHashes::Counter.new(n); n.times { |i| c.add(i % 3) }; [c.counts, c.counts.to_a, c.counts.equal?(c.counts)] }.to be_same_as_ruby.over(5, 12)
      expect do |run|
        counters = [3, 9].map { |n| MadeHashes::Counter.new(n) }
        run.peach(counters) { |c| c.counts = { c.size => 1, c => c.size.to_s } }
        counters.map { |c| [c.counts.keys.first, c.counts[c]] }
      end.to be_same_as_ruby
      expect { |n| [[{ 1 => [n] }] == [{ 1 => [4] }], { 1 => n } == { 1 => 4.0 }, { 1 => n } != { 2 => n }, [{ 1 => n }].include?({ 1 => 4 }), {} == n] }.to be_same_as_ruby.over(1, 4)
      expect { |n| h = { n => 1 }; [h.is_a?(Hash), h.class == Hash, h.instance_of?(Hash), Hash === h, h.is_a?(Enumerable), h.nil?, h.respond_to?(:merge), h.equal?(h)] }.to be_same_as_ruby.over(1)
    end

    it "keep frozen Strings of their own as keys" do
      keys = [+"ab", "ab", +"cd"].each(&:itself)
      keys[1].freeze
      expect { |s| h = {}; k = s + "c"; h[k] = 1; h[s] = 2; [h.keys.map(&:frozen?), k.frozen?, h.keys[0] == k, h] }.to be_same_as_ruby.over(keys)
    end

    it "obey generated programs" do
      random = Random.new(51)
      MadeHashes::KEYS.each_value do |keys|
        programs = Array.new(25) { MadeHashes.program(random, keys) }
        expect do |program|
          h = Hash.new(-1)
          seen = []
          program.each do |operation, key, value|
            value = 0 unless value.is_a?(Integer)
            case operation
            when :set then h[key] = value
            when :get then seen << h[key]
            when :delete then seen << h.delete(key)
            when :key then seen << h.key?(key)
            when :fetch then seen << h.fetch(key, nil)
            when :add then h[key] += value
            when :size then seen << h.size
            when :first then seen << h.first
            when :default then h[key] ||= value
            else seen << h.sum { |_, v| v }
            end
          end
          [h, seen, h.keys, h.values, h.select { |_, v| v.even? }, h.sort_by { |_, v| v }.size, h.group_by { |_, v| v % 3 }]
        end.to be_same_as_ruby.over(programs)
      end
    end
  end

  it "refuse Hash.new where the program has an initialize of its own" do
    output = run_ruby(<<~'RUBY')
      class Hash
        alias_method :begun, :initialize
        def initialize(*) = begun(7)
      end
      section = proc { |x| Hash.new(x)[0] }
      begin
        [1].pmap(backend: :cpu, &section)
      rescue Ikra::CompileError => e
        puts e.message[/kernels do not know.*/]
      end
      p [1].pmap(backend: :cpu) { |x| { x => 2 }.merge({ 3 => 4 }) } == [{ 1 => 2, 3 => 4 }]
    RUBY
    expect(output).to eq "kernels do not know Hash.new where the program redefines Hash#initialize\ntrue\n"
  end

  it "refuse what kernels lack" do
    {
      -> (x) { Hash.new { |h, k| h[k] = x } } => /no Hash with a block/,
      -> (x) { { MadeHashes::Keyed.new(x) => 1 }.size } => /do not ask MadeHashes::Keyed for hash/,
      -> (x) { { { x => 1 } => 1 }.size } => /Hashes as keys/,
      -> (x) { { x => 1 }.freeze } => /freeze of Hash/,
      -> (x) { { x => 1 }.compare_by_identity } => /Hash#compare_by_identity/,
      -> (x) { [[x, 2, 3]].to_h } => /to_h of Arrays of a key and a value only/,
      -> (x) { { x => 1 }.merge({ x => 2 }, { x => 3 }, {}, {}) } => /merge three Hashes at a time/,
      -> (x) { { x => 1 }.merge([x]) } => /merge and compare Hashes with Hashes only/,
      -> (x) { { x => 1 } <= x } => /merge and compare Hashes with Hashes only/,
      -> (x) { h = Hash.new { |_, k| k }; h.default = x } => /no other default/,
      -> (x) { h = Hash.new([]); h[x] << 1 } => /Array#<</,
      -> (x) { h = Hash.new([x]); (h[x] ||= []) << 1 } => /of a Hash that has a default or a block/,
      -> (x) { "#{{ x => 1 }}" } => /Hash#to_s/
    }.each { |block, message| expect { [1].pmap(&block) }.to raise_error(Ikra::CompileError, message) }
  end
end
