# frozen_string_literal: true

# Elements that are their own keys are grouped where they are, without a section.
RSpec.describe "Elements grouped by themselves" do
  # Elements of each kind, made from a random number.
  kinds = {
    integer: ->(n) { n % 50 },
    wide: ->(n) { n % 7 * (1 << 59) },
    bignum: ->(n) { (n % 5) + (1 << 62) },
    float: ->(n) { [0.0, -0.0, 1.0, 1.5, -2.5e300, Float::INFINITY, 5e-324][n % 7] },
    nan: ->(n) { [Float::NAN, 0.0 / 0.0, 1.0][n % 3] },
    short: ->(n) { "k#{n % 60}" },
    long: ->(n) { "key number #{n % 60}, ä" },
    empty: ->(_) { +"" },
    frozen: ->(n) { "f#{n % 9}" },
    broken: ->(n) { "\xff#{n % 5}" },
    binary: ->(n) { "\xff#{n % 5} in no encoding".b },
    ascii: ->(n) { "k#{n % 60}".encode("US-ASCII") },
    wide_text: ->(n) { "k#{n % 60}".encode("UTF-16LE") },
    symbol: ->(n) { :"k#{n % 9}" },
    none: ->(_) {},
    truth: ->(n) { n.odd? },
    list: ->(n) { [n % 3, "a"] }
  }

  # What can be seen of a key or an element.
  seen = lambda do |value|
    case value
    when Hash, Array then [value.class, *value.to_a.map(&seen)]
    when String then [value.encoding, value.frozen?, value.b]
    else [value.class, value.inspect]
    end
  end

  # How a list is grouped, by Ikra and by Ruby.
  ways = {
    tally: [->(list) { list.ptally }, ->(list) { list.tally }],
    uniq: [->(list) { list.puniq }, ->(list) { list.uniq }],
    uniq_by: [->(list) { list.puniq { |x| x } }, ->(list) { list.uniq { |x| x } }],
    group_by: [->(list) { list.pgroup_by { |x| x } }, ->(list) { list.group_by { |x| x } }],
    group_by_itself: [->(list) { list.pgroup_by(&:itself) }, ->(list) { list.group_by(&:itself) }]
  }
  # The very elements in a result. Keys of group_by may be copies.
  elements = lambda do |result|
    next result unless result.is_a?(Hash)

    result.values.first.is_a?(Array) ? result.values.flatten(1) : result.keys
  end
  same = lambda do |one, other|
    found, expected = [one, other].map(&elements)
    seen.call(one) == seen.call(other) && found.size == expected.size && found.zip(expected).all? { |a, b| a.equal?(b) }
  end

  mixtures = kinds.keys.map { |kind| [kind] }
  random = Random.new(51)
  mixtures += Array.new(60) { kinds.keys.sample(2 + random.rand(4), random: random) }

  ways.each do |name, (ours, rubys)|
    it "#{name} gives the very elements that Ruby gives, in its order" do
      random = Random.new(name.size)
      wrong = mixtures.product([0, 1, 2, 70, 511, 512, 5000]).reject do |mixture, size|
        list = Array.new(size) { kinds[mixture.sample(random: random)].call(random.rand(1 << 20)) }
        same.call(ours.call(list), rubys.call(list))
      end
      expect(wrong).to be_empty
    end

    it "#{name} of many elements" do
      size = 70_000
      lists = [
        Array.new(size) { |i| i * 7919 % 1009 },
        Array.new(size) { |i| i * 7919 },
        Array.new(size) { |i| i / 3 * 1_000_003 },
        Array.new(size, 7),
        Array.new(size, &:to_s),
        Array.new(size) { |i| "key #{i * 7919 % 30_011}" },
        Array.new(size) { |i| (i % 3 == 0 ? nil : i % 700) },
        Array.new(size) { |i| (i % 3 == 0 ? i % 700 : "key #{i % 700}") },
        Array.new(size) { |i| (i % 3 == 0 ? i % 700 : i % 700 / 2.0) },
        Array.new(size) { |i| (i == size - 1 ? [1] : i % 700) },
        Array.new(size) { |i| (i == size - 1 ? Float::NAN : "key #{i % 700}") }
      ]
      expect(lists.map { |list| same.call(ours.call(list), rubys.call(list)) }).to all be true
    end
  end

  it "groups as Ruby does while the collector runs at each allocation" do
    list = <<~RUBY
      words = Array.new(600) { |i| "key number \#{i % 13}" }
      mixed = Array.new(600) { |i| i % 4 == 0 ? nil : i % 4 == 1 ? 1e300 + i % 9 : i % 4 == 2 ? "word \#{i % 7}" : i % 5 }
      lists = [words, mixed, Array.new(600) { |i| i * 7 % 310 }, [], ["a"]]
    RUBY
    found = run_under_gc_stress(
      "lists.map { |list| [list.ptally, list.puniq, list.pgroup_by { |x| x }, list.puniq { |x| x }] }",
      before: "Ikra.config.backend = :cpu\n#{list}",
      show: "found == lists.map { |list| [list.tally, list.uniq, list.group_by { |x| x }, list.uniq { |x| x }] }"
    )
    expect(found).to eq "true\n"
  end

  it "keeps elements alive and in place while objects move" do
    skip "this Ruby does not compact" unless GC.respond_to?(:compact)

    expect(run_ruby(<<~RUBY)).to eq "true\n"
      Ikra.config.backend = :cpu
      begin
        GC.auto_compact = true
      rescue NotImplementedError
      end
      words = ->(from) { Array.new(50_000) { |i| "key number \#{(i + from) % 20_011}" } }
      same = Array.new(6) do |from|
        found = [words[from].pgroup_by { |x| x }, words[from].puniq, words[from].ptally]
        Array.new(100_000) { |i| "garbage \#{i}" }
        found == [words[from].group_by { |x| x }, words[from].uniq, words[from].tally]
      end
      p(same.all?)
    RUBY
  end

  it "runs no section for a block that only gives its element" do
    list = Array.new(3000) { |i| i % 7 }
    expect(Ikra.explain { list.pgroup_by { |x| x } }.sections).to be_empty
    expect(Ikra.explain { list.puniq(&:itself) }.sections).to be_empty
    expect(Ikra.explain { list.pgroup_by { |x| x + 0 } }.sections.size).to eq 1
  end

  it "groups by what a block gives that looks like its element" do
    pairs = [[1, 2], [1, 3], [1, 2]]
    # The comma makes it the first of each pair.
    expect(pairs.pgroup_by { |x,| x }).to eq(1 => pairs)
    expect(pairs.puniq { |(x)| x }).to eq [[1, 2]]
    expect(pairs.pgroup_by { _1 }).to eq pairs.group_by { _1 }
    expect(pairs.pgroup_by { |x| x }).to eq pairs.group_by { |x| x }
    expect(pairs.pgroup_by(&->(x) { x })).to eq pairs.group_by { |x| x }
    x = 7
    expect(pairs.pgroup_by { |_y| x }).to eq(7 => pairs)
    expect([3, 1, 3].pgroup_by.with_index { |y, _| y }).to eq(3 => [3, 3], 1 => [1])
  end

  it "takes elements that no kernel can hold, and objects with eql? and hash of their own" do
    own = Class.new do
      attr_reader :number

      def initialize(number) = @number = number
      def eql?(other) = number == other.number
      def hash = number.hash
    end
    text = Class.new(String)
    alone = %w[a b a].map(&:dup).each { |word| word.define_singleton_method(:hash) { 1 } }
    lists = [[own.new(1), own.new(2), own.new(1)], [$stdout, $stderr, $stdout], alone, [text.new("a"), "a", text.new("a")]]
    # Also behind many that tables take.
    lists += lists.map { |list| Array.new(1000) { |i| "key #{i % 9}" } + list }
    expect(lists.flat_map { |list| ways.map { |_, (ours, rubys)| same.call(ours.call(list), rubys.call(list)) } }).to all be true
  end

  it "takes part in a subclass of Array, and calls a method uniq of its own" do
    expect(Class.new(Array).new([1, 2, 1] * 500).puniq).to eq([1, 2]).and be_instance_of(Array)
    own = Class.new(Array) { def uniq = [:own] }
    expect(own.new([1, 2, 1] * 500).puniq).to eq [:own]
  end

  it "calls a method itself that is not Ruby's own" do
    expect(run_ruby(<<~RUBY)).to eq "[[0, 1500], [1, 1000]]\n[0, 1]\n"
      Ikra.config.backend = :cpu
      class Integer
        def itself = self % 2
      end
      list = (0..4).to_a * 500
      p list.pgroup_by(&:itself).transform_values(&:size).to_a
      p list.puniq(&:itself)
    RUBY
  end

  it "takes elements as they are before the call, and raises what keys raise" do
    list = Array.new(1000) { |i| i % 10 }.freeze
    groups = list.pgroup_by { |x| x }
    groups[3] << :more
    expect(list.count(:more)).to eq 0
    expect(groups[4]).to eq [4] * 100
    nameless = Array.new(1000) { BasicObject.new }
    expect { nameless.puniq }.to raise_error(NoMethodError)
    expect { nameless.pgroup_by { |x| x } }.to raise_error(NoMethodError)
  end
end
