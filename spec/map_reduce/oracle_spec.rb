# frozen_string_literal: true

# Generated programs and inputs: what they give is Ruby's answer, whatever groups the pairs.
RSpec.describe "pmap_reduce of generated inputs" do
  include ReduceAsRuby::Examples

  point = Struct.new(:x, :y)
  names = %i[a b c d e f g]
  plain = Class.new
  objects = Array.new(2000) { plain.new }
  # `==` tells which of several equal objects a Hash has as its key.
  numbered = Class.new do
    attr_reader :number

    def initialize(number) = @number = number
    def hash = number.hash
    def eql?(other) = other.is_a?(self.class) && number.eql?(other.number)
  end
  measure = defined?(Data.define) && Data.define(:unit, :size)
  # The key of a number.
  kinds = {
    "Integers" => ->(n) { n * 3 - 500 },
    "great Integers" => ->(n) { n * 9_000_000_000_007 },
    "Integers of 64 bits" => ->(n) { n.odd? ? 2**63 - n : n - 2**63 },
    "Floats" => ->(n) { n / 8.0 - 3 },
    # each NaN is a new object, which Ruby's Hash takes for a key of its own
    "Floats of all sorts" => ->(n) { [Float::NAN + n, -0.0, 0.0, Float::INFINITY, -Float::INFINITY, n * 5e-324, n / -3.0][n % 7] },
    "short Strings" => ->(n) { "k#{n}" },
    "long Strings" => ->(n) { "ü, a key of many bytes: #{n}" },
    "Strings of any bytes" => ->(n) { ["", "k\xFF#{n / 6}", "\xE2\x82", "#{n}".b, "\xFF#{n / 6}".b, "#{n}".encode("US-ASCII")][n % 6] },
    "Symbols and literals" => ->(n) { [nil, true, false, *names][n % 10] },
    "arrays" => ->(n) { [n % 7, n / 7] },
    "nested arrays" => ->(n) { [n % 3, [n / 3, :pair], nil] },
    "arrays with Strings" => ->(n) { ["page #{n / 4}", n % 4] },
    "Structs" => ->(n) { point.new(n % 5, n / 5) },
    "objects" => ->(n) { objects[n % objects.size] },
    "objects with an eql? of their own" => ->(n) { numbered.new(n / 2) },
    **(measure ? { "Data" => ->(n) { measure.new("m", n) } } : {}),
    "mixed keys" => ->(n) { [n, n.to_f, "#{n}", [n], nil, n.odd?][n % 6] }
  }
  # The number of the key of each of so many pairs.
  spreads = {
    "uniform" => ->(i, distinct) { i * 7919 % distinct },
    "Zipf" => ->(i, distinct) { (distinct**(i * 7919 % 1009 / 1009.0)).floor - 1 },
    "one hot key" => ->(i, distinct) { (i % 8).zero? ? i * 31 % distinct : distinct / 2 }
  }
  sizes = [0, 1, 2, 767, 999, 1000, 1001]
  engines = %i[direct small hash group]
  # Why an engine cannot run a program.
  only_ruby = "only Ruby's own Hash can compare these keys"
  reasons = {
    direct: /:direct cannot run this: (#{only_ruby}|it needs keys that are Integers in a small range)/,
    small: /:small cannot run this: #{only_ruby}/,
    hash: /:hash cannot run this: #{only_ruby}/
  }

  pairs = lambda do |kind, spread, distinct, count|
    Array.new(distinct.zero? ? 0 : count) { |i| [kinds.fetch(kind).call(spreads.fetch(spread).call(i, distinct)), i * 31 % 101 - 50] }
  end

  # The kernel groups pairs of one kind of key in its tables, where keys are what the block gets.
  emit = ->(pair, out) { out.emit(pair[0], pair[1]) }

  # Pairs in which all keys occur, in tables of every size.
  sweep = lambda do |kind, on, distinct, spread, count, operators|
    list = pairs.call(kind, spread, distinct, count)
    operators.each { |operator| expect(list).to(reduce_as_ruby(operator, on: on, &emit), "#{operator}, #{distinct} keys, #{spread}") }
    expect(list).to(reduce_as_ruby(reduce: ->(_key, values) { values.size * 1000 + values.last }, on: on, &emit))
    expected = ReduceAsRuby.oracle(list, :+, nil, emit)
    engines.product(Array(on)).each do |engine, backend|
      found = list.pmap_reduce(:+, engine: engine, backend: backend, &emit)
      expect(ReduceAsRuby.shown(found.to_a)).to eq(ReduceAsRuby.shown(expected.to_a)), "#{engine} on #{backend}, #{distinct} keys, #{spread}: #{found.inspect[0, 500]}"
    rescue ArgumentError => error
      expect(error.message).to match(reasons.fetch(engine)) # :group runs all
    end
    expect(list).to(reduce_as_ruby(engine: :append, on: on, &emit))
  end

  kinds.each_key do |kind|
    it "is Ruby's answer for #{kind}" do
      [0, 1, 2, 40].product(spreads.keys).each { |distinct, spread| instance_exec(kind, backends & %i[cpu reference], distinct, spread, 60, %i[+ min], &sweep) }
      instance_exec(kind, backends, 30, "Zipf", 90, %i[+], &sweep)
      instance_exec(kind, backends & %i[cpu], 1001, "uniform", 1200, %i[+ max], &sweep)
    end

    it "is Ruby's answer for #{kind}, in any number", :exhaustive do
      sizes.product(spreads.keys).each do |distinct, spread|
        instance_exec(kind, backends & %i[cpu cuda], distinct, spread, 3000, %i[+ min max & |], &sweep)
        instance_exec(kind, backends, distinct, spread, distinct, %i[+], &sweep)
      end
      instance_exec(kind, backends & %i[cpu cuda], 50_000, "uniform", 50_000, %i[+], &sweep)
    end
  end

  words = %w[the a cat dog über naïve ÉTÉ 漢字 -]
  texts = {
    "no text" => "", "empty lines" => "\n\nthe cat\n\n\na dog\n", "no final newline" => "the cat\na dog", "CRLF" => "the cat\r\n\r\na dog\r\nthe dog",
    "UTF-8" => Array.new(30) { |i| "#{words.rotate(i * 7).first(i % 5).join(" ")}\n" }.join, "one long line" => (words * 20).join("  "),
    "broken bytes" => "the\xFF cat\n\x80\nthe\xFF \xE2\x82\n", "no ASCII" => "漢字\n漢\n字", "zeros" => "the\0cat\nthe\0cat\n"
  }
  # What is done with a line, if it can be done with broken bytes.
  programs = {
    "lines" => ->(line, out) { out.emit(line, 1) },
    "sizes" => ->(line, out) { out.emit(line.bytesize % 5, line.bytesize) },
    "bytes" => ->(line, out) { line.each_byte { |byte| out.emit(byte, 1) } },
    "parts" => ->(line, out) { out.emit(line.byteslice(0, 3), 1); out.emit([line.byteslice(0, 1), line.empty?], 2) }
  }
  readable = {
    "words" => ->(line, out) { line.split.each { |word| out.emit(word, 1) } },
    "letters" => ->(line, out) { line.scan(/[a-z]+/) { |word| out.emit(word, 1) } },
    "pairs of words" => ->(line, out) { line.split.each_cons(2) { |pair| out.emit(pair, 1) } },
    "characters" => ->(line, out) { line.each_char { |char| out.emit(char, 1) } },
    "matches" => ->(line, out) { out.emit(line[/\w+/], line.size) if line.match?(/[aeiou]/) }
  }

  texts.each do |name, text|
    it "is Ruby's answer for lines: #{name}" do
      programs.merge(text.valid_encoding? ? readable : {}).each do |program, block|
        [true, *(false if program == "lines")].each do |chomp|
          expected = ReduceAsRuby.oracle(text.each_line(chomp: chomp), :+, nil, block)
          (backends - (name == "UTF-8" ? [] : %i[cuda_shim])).each do |backend|
            found = Ikra.lines(text: text, chomp: chomp, backend: backend).map_reduce(:+, &block)
            expect(found.to_a).to eq(expected.to_a), "#{program} on #{backend}, chomp: #{chomp}: #{found} is not #{expected}"
            expect(found.keys.grep(String).map(&:encoding)).to eq expected.keys.grep(String).map(&:encoding)
          end
        end
      end
    end
  end

  it "has the order that is asked for, is kept, and gives its greatest values" do
    list = pairs.call("Integers", "Zipf", 40, 120)
    expected = ReduceAsRuby.oracle(list, :+, nil, emit)
    greatest = expected.sort_by.with_index { |(_key, value), i| [-value, i] }
    [nil, *engines].product(backends).each do |engine, backend|
      run = ->(**more) { list.pmap_reduce(:+, engine: engine, backend: backend, **more, &emit) }
      expect(run.call(order: :key).to_a).to eq expected.sort
      expect(run.call(order: :none)).to eq expected
      groups = run.call(lazy: true)
      expect(groups.to_h.to_a).to eq expected.to_a
      expect([groups.size, groups.top(7), groups.top(1000)]).to eq [expected.size, greatest.first(7), greatest]
      expect(run.call(lazy: true, order: :key).first).to eq expected.min
      second = groups.map_reduce(:+, backend: backend) { |(key, value), out| out.emit(key % 3, value) }
      expect(second).to eq(expected.group_by { |key, _value| key % 3 }.transform_values { |some| some.sum(&:last) })
    end
  end

  it "is Ruby's answer for keys whose hashes are all the same" do
    constant = Class.new do
      attr_reader :number

      def initialize(number) = @number = number
      def hash = 7
      def eql?(other) = number == other.number
    end
    keys = Array.new(90) { |i| constant.new(i * 31 % 13) }
    expected = keys.map(&:number).tally.to_a
    backends.each do |backend|
      found = keys.pmap_reduce(:+, backend: backend) { |key, out| out.emit(key, 1) }
      expect(found.map { |key, count| [key.number, count] }).to eq expected
    end
  end
end
