# frozen_string_literal: true

module Tables
  WEIGHTS = { "apple" => 3, "pear" => 5, "fig" => 8 }.freeze

  class Shop
    attr_reader :prices

    def initialize(prices) = @prices = prices
    def price(name, level = :low) = @prices.dig(name, level)
  end

  Spot = Struct.new(:x, :y)

  class Plain; end

  # An object with a hash of its own.
  class Keyed
    attr_reader :id

    def initialize(id) = @id = id
    def hash = id.hash
    def eql?(other) = id == other.id
  end

  def self.changed
    key = [1]
    # A small Hash keeps one byte of a key's hash. Where the changed key has the same byte, Ruby still finds it.
    { key => 1 }.tap { |hash| key << 2 while hash.key?(key) }
  end

  class Table < Hash
  end
end

RSpec.describe "Hashes" do
  mixed = { a: 1, 5 => 2.5, "five" => :five, nil => nil, true => [1], 2.0 => 7, -1 => 0, "" => "", "é" => "e", 2**40 => true }
  keys = [:a, 5, "five", nil, true, 2.0, -1, "", "é", 2**40, :b, 6, "fiv", false, 2, 5.0, -0.0, "\xe9", Float::NAN, Values::MAX, Object.new, [1]]

  on_every_backend do
    it "are dug in where a default stands in" do
      known = Hash.new([1, [2]]).merge!(1 => [3, [4]])
      expect { |x| [known.dig(x, 0), known.dig(x, 1), known.dig(x)] }.to be_same_as_ruby.over(1, 7)
    end

    it "are looked up" do
      expect { |key| mixed.key?(key) ? mixed.fetch(key) : :none }.to be_same_as_ruby.over(*keys)
      expect { |key| mixed[key] }.to be_same_as_ruby.over(*keys)
      expect { |key| mixed.fetch(key, 9) }.to be_same_as_ruby.over(*keys)
      expect { |key| mixed.fetch(key) { |k| k.is_a?(Integer) ? k - 1 : 0 } }.to be_same_as_ruby.over(*keys)
      expect { |key| (mixed.has_key?(key) ? 1 : 0) + (mixed.include?(key) ? 2 : 0) + (mixed.member?(key) ? 4 : 0) }.to be_same_as_ruby.over(*keys)
    end

    it "are dug into, and what they hold" do
      lists = { 1 => [4, 5], 2 => [], 3 => nil }
      expect { |key| lists.dig(key, 1) }.to be_same_as_ruby.over(1, 2, 3, 4)
      numbers = { 1 => 5 }
      expect { |key| numbers.dig(key, 0) }.to be_same_as_ruby.over(2, 1)
    end

    it "of one kind of key and value" do
      expect { |name| Tables::WEIGHTS[name] * 2 + Tables::WEIGHTS.size }.to be_same_as_ruby.over("fig", "apple", "pear", "plum")
      squares = (0..999).to_h { |i| [i * 7, i * i] }
      expect { |i| squares[i] }.to be_same_as_ruby.over(*(0..300).to_a, 6993, -7, 7000)
      names = ("aa".."zz").to_h { |n| [n.to_sym, n] }
      expect { |name| names[name] }.to be_same_as_ruby.over(:aa, :zz, :mn, :a, :zzz)
    end

    it "have a default value" do
      counts = Hash.new(0).merge!(a: 3)
      expect { |key| counts[key] + 1 }.to be_same_as_ruby.over(:a, :b)
      expect { |key| counts.fetch(key) + 1 }.to be_same_as_ruby.over(:a, :b)
    end

    it "raise KeyError, in Ruby's words" do
      expect { |key| mixed.fetch(key) }.to be_same_as_ruby.over(:a, :b, "no", 7, 1.5, nil, false)
      error = begin
        [:b].pmap(backend: backend) { |key| mixed.fetch(key) }
      rescue KeyError => e
        e
      end
      expect([error.key, error.receiver.equal?(mixed)]).to eq [:b, true]
    end

    it "are walked through, in their order" do
      table = { a: 1, b: 2.5, c: 4 }
      expect do |x|
        sum = 0
        table.each { |key, value| sum = sum * 3 + value * (key == :b ? x : 1) }
        table.each_pair { |_, value| break if value > 2; sum += 1000 }
        table.each_key { |key| sum += 1 if key == :c }
        table.each_value { |value| sum += value }
        sum + (table.any? { |key, _| key == :a } ? 1 : 0) + table.count { |_, value| value > x } * 10 + (table.all? { |_, v| v > 0 } ? 5 : 7)
      end.to be_same_as_ruby.over(1, 2, 10)
      empty = {}
      expect { |x| empty.each { |k, v| x += v if k }; empty.empty? ? x : empty.size + (empty.any? ? 1 : 0) }.to be_same_as_ruby.over(1, 2)
      expect { |x| table.value?(x) ? table.key(x) : nil }.to be_same_as_ruby.over(1, 2, 2.5)
    end

    it "have Arrays and Structs as keys, by what these are made of" do
      lists = { [1, 2] => 3, [] => 0, [1, [2.0, :a]] => 4, ["s", nil] => 5, [0.0] => 9, 7 => 8 }
      expect { |key| [lists[key], lists.key?(key), lists.fetch(key, :none)] }.to be_same_as_ruby
        .over([1, 2], [], [1, [2.0, :a]], ["s", nil], [1, 2.0], [2, 1], [-0.0], 7, nil, [1, [2, :a]])
      expect { |x| [lists[[x, x + 1]], lists[[]]] }.to be_same_as_ruby.over(1, 2)
      spots = { Tables::Spot.new(1, 2) => :a, Tables::Spot.new([1], nil) => :b }
      expect { |key| spots[key] }.to be_same_as_ruby.over(Tables::Spot.new(1, 2), Tables::Spot.new([1], nil), Tables::Spot.new(2, 1), 5)
      expect { |x| spots[Tables::Spot.new(x, 2)] }.to be_same_as_ruby.over(1, 2)
    end

    it "have objects as keys, which are themselves alone" do
      one = Tables::Plain.new
      other = Tables::Plain.new
      table = { one => 1, other => 2, 3 => 4 }
      expect { |key| [table[key], table.key?(key)] }.to be_same_as_ruby.over(one, other, Tables::Plain.new, 3, nil)
      expect { |_| table[Tables::Plain.new] }.to be_same_as_ruby.over(1)
    end

    it "do not ask an object for a hash of its own" do
      table = { 1 => 2 }
      expect { [Tables::Keyed.new(1)].pmap(backend:) { |key| table[key] } }.to raise_error(Ikra::CompileError, /do not ask Tables::Keyed for hash/)
    end

    it "are in objects, arrays and Hashes, and come back as they are" do
      expect do |run|
        shop = Tables::Shop.new({ day: { low: 1, high: 4 }, night: { low: 2 } })
        list = [{ a: 1 }, { b: 2 }, nil]
        [
          run.pmap(%i[day night noon]) { |time| (shop.price(time) || 0) * 10 + (shop.price(time, :high) || 5) },
          run.pmap([0, 1, 2]) { |i| list[i] ? list[i][:a] : list[0] },
          run.pmap(list) { |h| h && h[:b] }
        ]
      end.to be_same_as_ruby
    end

    it "are looked at anew at each call" do
      live = { a: 1 }
      section = ->(run) { run.pmap(%i[a b]) { |key| live[key] } }
      expect do |run|
        live.replace({ a: 1 })
        first = section.call(run)
        live[:b] = 2
        [first, section.call(run)]
      end.to be_same_as_ruby
    end
  end

  on_every_backend do
    it "find with what is called where nothing is found" do
      hash = { 1 => 2, 3 => 4 }
      none = -> { :none }
      expect { |x| [hash.find(none) { |k, _| k > x }, hash.detect(none) { |k, v| k + v == x }, hash.find(nil) { |k, _| k > x }] }.to be_same_as_ruby.over(0, 2, 5)
      expect { |x| hash.find(x) { |k, _| k > x } }.to be_same_as_ruby.over(1, 2)
      expect { |x| hash.find(x) { |k, _| k > x } }.to be_same_as_ruby.over(5)
      expect { |x| hash.find(x, 2) { |k, _| k > x } }.to be_same_as_ruby.over(1)
      expect { |x| hash.count(x, 2) }.to be_same_as_ruby.over(1)
    end

    it "do not name a Range that they lack" do
      hash = { 1 => 2 }
      expect { [1].pmap(backend: backend) { |x| hash.fetch(x..2) } }.to raise_error(Ikra::CompileError, /KeyError of a Range/)
      expect { |x| [hash.fetch(x..2, 5), hash.fetch(x..2) { x }] }.to be_same_as_ruby.over(1)
    end
  end

  describe "as records" do
    records = Array.new(7) { |i| { "id" => i, name: "n#{i}", "age" => i % 3, "at" => { x: i, "y" => [i, nil] } } }
    others = [{ "age" => nil }, {}, Hash.new(5).merge!("id" => 1), { "age" => 1.5, "id" => 2 }.freeze,
              { "id" => 3, "age" => 4 }.tap { |h| h.delete("id") }, (0...20).to_h { |i| ["k#{i}", i] }.merge!("age" => 7),
              (0...20).to_h { |i| ["k#{i}", i] }.tap { |h| h.delete("k0") }.tap { |h| h["k0"] = -1 }, { nil => 1, [1] => 2, "age" => 8, 5 => 6 }]

    on_every_backend do
      it "are read at constant keys" do
        expect { |x| [x["age"], x[:name].size, x["id"] * 2, x["at"][:x], x["none"], x[:age], x.key?("age"), x.include?(:age)] }
          .to be_same_as_ruby.over(*records)
        expect { |x| [x["age"], x["id"], x["k0"], x["k19"], x.key?("id"), x.key?("k0")] }.to be_same_as_ruby.over(*others)
        expect { |x| [x["age"], x[x.key?("id") ? "id" : "k0"], x.size, x.values_at("age", "k3"), x.keys.size] }.to be_same_as_ruby.over(*others[0..6])
      end

      it "are fetched from, and dug in" do
        expect { |x| [x.fetch("age"), x.fetch("zip", 7), x.fetch(:zip) { |key| key == :zip }, x.fetch("age") { 1 }] }.to be_same_as_ruby.over(*records)
        expect { |x| [x.fetch("age", 7), x.fetch("id") { |key| key.size }] }.to be_same_as_ruby.over(*others)
        expect { |x| x.fetch("id") }.to be_same_as_ruby.over(*others)
        expect { |x| x.fetch("id", 1, 2) }.to be_same_as_ruby.over(*others)
        expect { |x| [x.dig("at", :x), x.dig("at", "y", 0), x.dig("age"), x.dig("none", :x)] }.to be_same_as_ruby.over(*records)
        expect { |x| x.dig("id", :x) }.to be_same_as_ruby.over(*records)
      end

      it "are matched with patterns" do
        expect do |x|
          case x
          in { a: Integer => n, b: } then [n, b]
          in { a: } then a
          in { b: 1 } then :one
          else :none
          end
        end.to be_same_as_ruby.over({ a: 1, b: 2 }, { a: nil }, { b: 1 }, { b: 2 }, {})
      end

      it "are looked at anew at each call" do
        many = Array.new(3000) { |i| { "age" => i % 5, "id" => i } }
        section = ->(run) { run.pmap(many) { |x| x["age"] } }
        expect do |run|
          many.each_with_index { |x, i| x.replace({ "age" => i % 5, "id" => i }) }
          found = [section.call(run)]
          many[3]["age"] = 70
          many[4].delete("age")
          many[5].default = 9
          many[6].clear
          found << section.call(run)
          many[6].default = 8
          many[7].delete("age")
          many[7]["age"] = 1.5
          many[8].compare_by_identity.clear
          many[8].replace({})
          9.times { |i| many[10]["more#{i}"] = i }
          many[11].rehash
          found << section.call(run)
        end.to be_same_as_ruby
      end

      it "have keys that are Strings of other encodings, or of a subclass" do
        text = Class.new(String).new("a")
        expect { |x| [x["a"], x.key?("a")] }
          .to be_same_as_ruby.over({ "a".encode("UTF-16LE") => 1 }, { "a".encode("US-ASCII") => 2 }, { "a".b => 3, "b" => 4 }, { text => 5 }, { "a\0" => 6 })
      end
    end

    it "are refused where Ruby would run a block for what is missing" do
      section = ->(list) { list.pmap { |x| x["age"] } }
      list = Array.new(3) { |i| { "age" => i } }
      expect(section.call(list)).to eq([0, 1, 2])
      list[1] = {}
      expect(section.call(list)).to eq([0, nil, 2])
      list[1].default_proc = ->(_, _) { 1 }
      expect { section.call(list) }.to raise_error(Ikra::CompileError, /a Hash with a block for its defaults/)
      list[1] = {}.compare_by_identity
      expect { section.call(list) }.to raise_error(Ikra::CompileError, /by identity/)
    end
  end

  # Calls of Enumerable's methods, each in a block of its own.
  over_pairs = ["grep(Array)", "grep(Array) { |k, v| v }", "grep_v(Array)", "grep_v(Integer) { |pair| pair }", "select { |k, v| v > 1 }", "reject { |k, v| v > 1 }",
                "find_all { |k, v| v > 1 }", "filter_map { |k, v| k if v > 1 }", "partition { |k, v| v > 1 }", "min_by { |k, v| -v }", "max_by(1) { |k, v| v }", "sum { |k, v| v }",
                "each_slice(2).to_a", "each_cons(2).to_a", "each_with_index.to_a", "each_entry.to_a", "zip([1])", "flat_map { |k, v| [k] * v }", "first(2)", "take_while { |k, v| v < 2 }",
                "drop_while { |k, v| v < 2 }", "drop(1)", "uniq { |k, v| v }", "group_by { |k, v| v }", "tally", "each_with_object([]) { |(k, v), l| l << v }", "inject { |a, b| a + b }",
                "sort_by { |k, v| -v }", "minmax_by { |k, v| v }", "to_a", "chunk_while { |a, b| true }.to_a", "slice_after { |k, v| v > 1 }.to_a", "reverse_each.to_a", "find_index { |k, v| v == 2 }",
                "include?(1)", "count { |k, v| v > 1 }", "none? { |k, v| v > 1 }", "one? { |k, v| v > 1 }", "any? { |k, v| v > 1 }", "all? { |k, v| v > 1 }", "cycle.take(3)"]

  on_every_backend do
    # The values of all Hashes have one type.
    it "hold Hashes whose values lack the methods that are called on these Hashes" do
      states = { idle: { start: :run }, run: { stop: :idle, pause: :wait }, wait: { start: :run } }
      expect { |events| events.reduce(:idle) { |state, event| states[state][event] || state } }.to be_same_as_ruby.over(%i[start pause start], %i[stop], [])
      expect { |key| states[key].size }.to be_same_as_ruby.over(:idle, :run, :none)
      deep = { 1 => { 2 => { 3 => :end } } }
      expect { |key| deep[1][2].keys + [deep[1][2][key]] }.to be_same_as_ruby.over(3, 4)
    end

    it "have the methods of Enumerable, each with a result of Ruby's class" do
      over_pairs.each do |call|
        [{ 1 => 2, 3 => 1 }, {}, { 7 => 0, 8 => 2, 9 => 2 }].each do |hash|
          block, made = ["hash.#{call}", "{ x => 2, 3 => 1 }.#{call}"].map { |text| eval("proc { |x| #{text} }", binding) }
          expect([[1].pmap(backend: backend, &block), [1].pmap(backend: backend, &made)]).to eq([[block.call(1)], [made.call(1)]]), call
        end
      end
    end
  end

  it "that kernels cannot hold are refused" do
    [[{ (1..2) => 2 }, /a Hash with a Range as a key/], [{ [2**70] => 1 }, /an Integer beyond 64 bits as a key/], [{ [Float::NAN] => 1 }, /NaN as a key/],
     [{ Tables::Keyed.new(1) => 2 }, /a Hash with a Tables::Keyed as a key/], [{ [Tables::Keyed.new(1)] => 2 }, /a Hash with a Tables::Keyed as a key/],
     [Tables.changed, /a key that was changed after/], [Array.new(300) { Tables::Plain.new }.to_h { |x| [x, 1] }, /more than 256 objects as keys/],
     [{ 2**70 => 1 }, /an Integer beyond 64 bits as a key/], [{ Float::NAN => 1 }, /NaN as a key/], [{}.compare_by_identity, /by identity/],
     [Hash.new { |h, k| h[k] = 1 }, /block for its defaults/], [Tables::Table.new, /no plain Hash/]].each do |hash, message|
      expect { [1].pmap { |x| hash[x] } }.to raise_error(Ikra::CompileError, message)
    end
  end

  it "are not changed, nor compared" do
    hash = { a: 1 }
    held = [{}]
    expect { [hash].pmap { |held| held[:b] = 1 } }.to raise_error(Ikra::CompileError, /Hash#\[\]=.*look Hashes up/m)
    expect { [1].pmap { |x| held[0][:b] = x } }.to raise_error(Ikra::CompileError, /Hash#\[\]=.*look Hashes up/m)
    expect { [1].pmap { |x| hash[:b] = x } }.to raise_error(Ikra::CompileError, /the value of the accumulation is used here/)
    expect { [1].pmap { |x| hash == x } }.to raise_error(Ikra::CompileError, /Hash#==/)
    expect { [1].pmap { |x| hash.rassoc(x) } }.to raise_error(Ikra::CompileError, /Hash#rassoc.*write it out/m)
    expect { [1].pmap { |x| hash.each(&->(k, v) { x += v }) } }.to raise_error(Ikra::CompileError, /literal blocks/)
  end
end
