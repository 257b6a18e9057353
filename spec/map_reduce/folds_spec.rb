# frozen_string_literal: true

# Functions for `reduce:` that only fold the values of a group.
RSpec.describe "reduce functions that fold" do
  include ReduceAsRuby::Examples

  # Whether the kernel grouped the pairs. Gives the result, too.
  def grouped(reduce, list, backend, **options, &block)
    found = nil
    text = Ikra.explain { found = list.pmap_reduce(reduce: reduce, backend: backend, **options, &block) }.to_s
    [found, text.include?("in the kernel")]
  end

  # `tables`: whether tables must have computed the result.
  def compare(list, reduce, tables: true, **options, &block)
    want = ReduceAsRuby.oracle(list, nil, reduce, block)
    backends.each do |backend|
      found, used = grouped(reduce, list, backend, **options, &block)
      expect(found.to_a.inspect).to eq(want.to_a.inspect), "on #{backend}"
      expect(used).to eq(tables), "tables on #{backend}"
    end
  end

  {
    sum: ->(_key, values) { values.sum },
    min: ->(_key, values) { values.min },
    max: ->(_, values) { values.max },
    size: ->(_key, values) { values.size },
    length: ->(_key, values) { values.length },
    count: proc { |_key, values| values.count },
    numbered: proc { _2.sum + _1 },
    expression: ->(_key, values) { values.sum * 2 + 1 },
    key: ->(key, values) { [key, values.max, values.max.to_s] },
    branches: ->(key, values) { key.even? ? values.sum : nil }
  }.each do |name, reduce|
    it "fold Integers: #{name}" do
      [[5], [3, 1, 3], (1..300).to_a].each do |list|
        compare(list, reduce) { |x, out| out.emit(x % 7, x * 3 - 100); out.emit(x, x) if x.even? }
      end
    end
  end

  it "fold Floats" do
    list = (1..100).to_a
    [->(_, values) { values.sum }, ->(_, values) { values.min }, ->(_, values) { values.max }, ->(key, values) { values.sum / 3 + key }].each do |reduce|
      compare(list, reduce) { |x, out| out.emit(x % 7, x * 0.25 - 9) }
    end
    sum = ->(_, values) { values.sum }
    backends.each { |backend| expect(grouped(sum, [2e15, 0.1, -2e15, 0.1], backend) { |x, out| out.emit(1, x) }).to eq [{ 1 => 0.2 }, true] }
  end

  it "count what is no number" do
    size = ->(_, values) { values.size }
    compare(%w[a bc d], size) { |word, out| out.emit(word.size, word) }
    compare([1, 2.5, nil, "x"], size) { |x, out| out.emit(x.nil?, x); out.emit([1], [x]) }
    point = Struct.new(:x)
    compare([point.new(1), point.new(2)], size) { |at, out| out.emit(at.x % 1, at) }
  end

  it "give way to the block where tables do not tell" do
    sum, max = ->(_, values) { values.sum }, ->(_, values) { values.max }
    [[0.0 / 0, 1.0], [Float::INFINITY, 1.0], [1e300, 1.0], [-0.0, 0.0], [-0.0], [1, 2.5]].each do |values|
      compare(values, sum, tables: false) { |x, out| out.emit(1, x) }
    end
    compare([-0.0, 0.0], max, tables: false) { |x, out| out.emit(1, x) }
    compare(%w[a b], max, tables: false) { |x, out| out.emit(1, x) }
    compare([1, 2, 3], sum, tables: false, engine: :group) { |x, out| out.emit(x % 2, x) }
    [
      ->(_, values) { values.sum { |x| x * 2 } },
      ->(_, values) { values.sum(1) },
      ->(_, values) { values.sum / values.size },
      ->(_, values) { values.size * 2 },
      ->(_, values) { values.max - values.min },
      ->(_, values) { values.first + values.sum },
      lambda { |_, values|
        values = [1] if values.size > 1
        values.sum
      },
      ->(_, values = [1]) { values.sum },
      ->(key, _values) { key }
    ].each { |reduce| compare([1, 2, 3], reduce, tables: false) { |x, out| out.emit(x % 2, x) } }
  end

  it "raise for totals beyond 64 bits, where they are asked for" do
    great = [2**62, 2**62, 1]
    backends.each do |backend|
      sum = ->(_, values) { values.sum }
      expect { great.pmap_reduce(reduce: sum, backend: backend) { |x, out| out.emit(1, x) } }.to raise_error(Ikra::IntegerOverflow)
      some = ->(key, values) { key == 1 ? 0 : values.sum }
      expect(great.pmap_reduce(reduce: some, backend: backend) { |x, out| out.emit(x == 1 ? 2 : 1, x) }).to eq(1 => 0, 2 => 1)
      expect { [1, 0].pmap_reduce(reduce: sum, backend: backend) { |x, out| out.emit(1, 1 / x) } }.to raise_error(ZeroDivisionError)
      expect { [1, 2].pmap_reduce(reduce: ->(_, values) { 1 / (values.sum - 3) }, backend: backend) { |x, out| out.emit(1, x) } }.to raise_error(ZeroDivisionError)
      expect([].pmap_reduce(reduce: sum, backend: backend) { |x, out| out.emit(1, x) }).to eq({})
      expect([1].pmap_reduce(reduce: sum, backend: backend) { |_x, _out| nil }).to eq({})
      expect([1, 2].pmap_reduce(reduce: sum, backend: backend) { |x, out| (break 7 if x == 2; out.emit(1, x)) }).to eq 7
    end
  end

  it "fold the pairs of chains, lines and MDArrays" do
    sum, size = ->(_, values) { values.sum }, ->(_, values) { values.size }
    before = Ikra.config.backend
    backends.each do |backend|
      Ikra.configure { |config| config.backend = backend }
      text = "the cat\nthe dog\n"
      expect(Ikra.lines(text: text, chomp: true).map_reduce(reduce: sum) { |line, out| line.split.each { |word| out.emit(word, word.size) } }).to eq("the" => 6, "cat" => 3, "dog" => 3)
      expect(Ikra.lines(text: text).map_reduce(reduce: size) { |line, out| line.split.each { |word| out.emit(word, word) } }).to eq("the" => 2, "cat" => 1, "dog" => 1)
      expect((1..9).plazy.select(&:odd?).map_reduce(reduce: sum, order: :key) { |x, out| out.emit(x % 3, x) }).to eq(0 => 12, 1 => 8, 2 => 5)
      expect((1..9).plazy.map { |x| x * 2 }.map_reduce(reduce: size) { |x, out| out.emit(x % 3, nil) }).to eq(2 => 3, 1 => 3, 0 => 3)
      expect(Ikra::MDArray.new([[1, 2], [2, 1]]).map_reduce(reduce: sum) { |x, out| out.emit(x, 0.5) }).to eq(1 => 1.0, 2 => 1.0)
      expect(Ikra::MDArray.new([[1, 2], [2, 1]]).map_reduce(reduce: size) { |x, out| out.emit(x, [x]) }).to eq(1 => 2, 2 => 2)
    ensure
      Ikra.configure { |config| config.backend = before }
    end
  end

  it "fold in subclasses of Ikra::MapReduce" do
    summing = Class.new(Ikra::MapReduce) do
      def initialize(scale) = @scale = scale
      def map(x) = emit(x % 3, x)
      def reduce(key, values) = [key, values.sum * @scale]
    end
    counting = Class.new(Ikra::MapReduce) do
      def map(x) = emit(x % 3, [x])

      private

      def reduce(_key, values) = values.size
    end
    backends.each do |backend|
      found = nil
      text = Ikra.explain { found = [summing.new(10), counting.new].map { |job| job.run(1..9, backend: backend) } }.to_s
      expect(found).to eq [{ 1 => [1, 120], 2 => [2, 150], 0 => [0, 180] }, { 1 => 3, 2 => 3, 0 => 3 }]
      expect(text.scan("in the kernel").size).to eq 2
    end
  end

  it "ask what Ruby would ask" do
    text = <<~RUBY
      require "ikra"
      class Array
        def sum = 42
        def max = 17
      end
      [->(_, values) { values.sum }, ->(_, values) { values.max }].each do |reduce|
        p [1, 2].pmap_reduce(reduce: reduce, backend: :reference) { |x, out| out.emit(1, x) }
      end
    RUBY
    Dir.mktmpdir do |folder|
      File.write("#{folder}/program.rb", text)
      found = IO.popen([RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "#{folder}/program.rb"], err: %i[child out], &:read)
      expect(found).to eq "#{{ 1 => 42 }}\n#{{ 1 => 17 }}\n"
    end
  end
end
