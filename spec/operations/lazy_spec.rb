# frozen_string_literal: true

# Chains against Ruby's own lazy chains.
module LazilyAsRuby
  # Runs a story with `base.lazy`, then with `base.plazy` on each backend. Its value, or its exception, must be the
  # same.
  class Matcher
    def initialize(backends, story)
      @backends = backends
      @story = story
    end

    def with(**options)
      @options = options
      self
    end

    def matches?(actual)
      make = actual.is_a?(Proc) ? actual : -> { actual }
      expected = outcome(make.call, &:lazy)
      @backends.each do |backend|
        got = outcome(make.call) { |base| base.plazy(backend: backend, **@options.to_h) }
        next if expected == got

        @failure = "on #{backend}\n  Ruby: #{expected.inspect[0, 1000]}\n  Ikra: #{got.inspect[0, 1000]}"
        return false
      end
      true
    end

    def supports_block_expectations? = true

    def supports_value_expectations? = true

    def description = "do what Ruby's lazy chain does"

    attr_reader :failure

    def failure_message = @failure

    private

    def outcome(base)
      value = @story.call(yield(base))
      value = value.to_a if value.is_a?(Enumerator::Lazy) || value.is_a?(Ikra::Lazy)
      Graph.of(value, base)
    rescue StandardError => e
      raise if e.is_a?(Ikra::CompileError)

      [e.class.name, e.message]
    end
  end

  def chain_as_ruby(&story) = Matcher.new(backends, story)

  def sections(&block) = Ikra.explain(&block).sections.size
end

module DoAsRuby
  # A method that becomes a block.
  module Half
    def self.of(x) = x / 2.0
  end
end

RSpec.describe Ikra::Lazy do
  include LazilyAsRuby

  sizes = [0, 1, 2, 31, 33, 1000]
  bases = {
    "Integers" => ->(size) { Array.new(size) { |i| (i * 7919) % 101 - 50 } },
    "Floats" => ->(size) { Array.new(size) { |i| (i * 37 % 11) / 3.0 } },
    "Integers, Floats and nil" => ->(size) { Array.new(size) { |i| [i, i / 2.0, nil][i % 3] } },
    "a Range" => ->(size) { (3...(3 + size)) }
  }

  bases.each do |kind, base|
    it "maps, selects and counts as Ruby does, over #{kind}" do
      sizes.each do |size|
        list = base.call(size)
        expect(list).to(chain_as_ruby { |chain| chain.map { |x| x ? x * 2 : 0 }.map { |x| x + 1 } })
        expect(list).to(chain_as_ruby { |chain| chain.select { |x| x && x > 3 }.map { |x| x - 1 }.reject { |x| x > 7 } })
        expect(list).to(chain_as_ruby { |chain| chain.filter_map { |x| x && x * 3 }.take_while { |x| x < 100 } })
        expect(list).to(chain_as_ruby { |chain| chain.compact.flat_map { |x| [x, -x] }.map { |x| x + 1 } })
        expect(list).to(chain_as_ruby { |chain| chain.map { |x| x || 1 }.take(5).each_slice(2) })
        expect(list).to(chain_as_ruby { |chain| chain.drop(1).map { |x| x.nil? }.drop(1).each_slice(3).map { |slice| slice.size } })
        expect(list).to(chain_as_ruby { |chain| chain.zip([7, 8, 9]).map { |x, y| y ? y : x } })
        expect(list).to(chain_as_ruby { |chain| chain.with_index(2).select { |x, i| i.odd? && !x.nil? }.map { |x, i| x * i } })
        expect(list).to(chain_as_ruby { |chain| chain.select { |x| x }.with_index.map { |x, i| x + i }.first(4) })
        expect(list).to(chain_as_ruby { |chain| chain.map { |x| x || 0 }.sum })
        expect(list).to(chain_as_ruby { |chain| chain.compact.map { |x| x + x }.minmax })
        expect(list).to(chain_as_ruby { |chain| [chain.count, chain.count(&:nil?), chain.count(3)] })
      end
    end
  end

  it "runs chains of any length as one kernel" do
    list = (1..1000).to_a
    [1, 2, 10, 100].each do |length|
      long = ->(chain) { (1..length).reduce(chain) { |so_far, k| so_far.map { |x| (x * 3 + k) % 1009 } } }
      expect(list).to chain_as_ruby(&long)
      expect(sections { long.call(list.plazy).to_a }).to eq 1
    end
  end

  it "passes values that stand side by side as Ruby does" do
    list = [[1, 2], [3], [], [4, 5, 6]]
    expect(list).to(chain_as_ruby { |chain| chain.map { |a, b| [b, a] } })
    expect(list).to(chain_as_ruby { |chain| chain.map { |a| a.size } })
    expect(list).to(chain_as_ruby { |chain| chain.with_index.map { |(a, b), i| [a, b, i] } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.map { |x| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.map { _1 * _2 } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.select { |pair| pair[1] > 0 } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5], [6, 7]).map { |x, y, z, w| [w, z, y, x] } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5, 6]).with_index.map { |(x, y), i| x * y + i } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.map(&:+) })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.map(&->(x, i) { x * i }) })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index(&->(x, i) { x * i }).map { |x| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.sum { |pair| pair.size } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.each_with_index.map { 5 } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.to_a })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.find { |_, i| i == 1 } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.map { |*x| x }.map { |x| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.map { |x, y = 5| x * y } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.map { |x, *y| [x, y.size] } })
    # From 3.3 on Ruby gives these an array.
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5], [6, 7]).map { |*x| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5, 6], 1..).select { |x, _| x > 3 }.map { |*x| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5, 6]).drop(1).map { |x| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5], [6, 7]).map { |x, *y| [x, y] } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5], [6, 7]).select { |x, y, z = 9| y && z > x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.zip([5], [6, 7]).map { |*x, y| [x, y] } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.map { |x, i, k = 2| x * i + k } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.with_index.map { |x,| x } })
    expect([3, 4]).to(chain_as_ruby { |chain| chain.map { |x,| x } })
  end

  it "does not raise what the sequential chain would not have come to" do
    list = [6, 3, 2, 1, 0, 5]
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.first(3) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.first })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.take(4) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.first(5) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.select(&:even?).first(2) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.select(&:even?).first(3) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.select(&:even?).take(2).map { |x| x + 1 } })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.find { |x| x > 2 } })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.include?(3) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 6 / x }.include?(4) })
    expect(list).to(chain_as_ruby { |chain| chain.any? { |x| 6 / x == 2 } })
    expect(list).to(chain_as_ruby { |chain| chain.none? { |x| 6 / x == 2 } })
    expect(list).to(chain_as_ruby { |chain| chain.all? { |x| 6 / x < 6 } })
    expect(list).to(chain_as_ruby { |chain| chain.one? { |x| 6 / x < 3 } })
    expect(list).to(chain_as_ruby { |chain| chain.take_while { |x| 6 / x < 6 } })
    expect(list).to(chain_as_ruby { |chain| chain.take_while { |x| x > 1 }.map { |x| 6 / x } })
    expect(list).to(chain_as_ruby { |chain| chain.flat_map { |x| [6 / x, x] }.first(3) })
    # The earlier error is that of the later stage.
    expect(list).to(chain_as_ruby { |chain| chain.select { |x| 6 / x }.with_index.map { |x, i| [x].fetch(i / 2) } })
    expect((1..100_000)).to(chain_as_ruby { |chain| chain.map { |x| 10 / (90_000 - x) }.select { |x| x > 4 }.first(2) })
  end

  it "says at which element of the chain an error was" do
    [[0...1000, 0], [-400...600, 400]].each do |base, at|
      base.plazy.select { |x| 1 / x }.first(1000)
    rescue ZeroDivisionError => e
      expect(e.ikra.index).to eq at
    end
  end

  it "reads the base when the values are asked for", :stress do
    list = [1, 2]
    chain = list.plazy.map { |x| x + 1 }
    list << 5
    expect(chain.to_a).to eq [2, 3, 6]
    list.replace([1.5])
    expect([chain.to_a, chain.first, chain.size]).to eq [[2.5], 2.5, 1]
    shared = chain.map { |x| x * 2 }
    expect([chain.select { |x| x > 9 }.to_a, shared.to_a, chain.to_a]).to eq [[], [5.0], [2.5]]
  end

  it "reads variables around blocks when the values are asked for" do
    k = 3
    chain = (1..3).plazy.map { |x| x * k }
    k = 10
    expect(chain.to_a).to eq [10, 20, 30]
  end

  it "reduces as preduce does, in the kernel that computes the values" do
    [0, 1, 2, 255, 256, 257, 1000].each do |size|
      list = Array.new(size) { |i| 1.0 / (i + 1) }
      backends.each do |backend|
        expect(list.plazy(backend: backend).map { |x| x * 3 }.reduce { |a, b| a + b }).to eq(list.map { |x| x * 3 }.preduce { |a, b| a + b })
        expect(list.plazy(backend: backend).map { |x| x * 3 }.inject(0.5) { |a, b| a + b }).to eq(list.map { |x| x * 3 }.preduce(0.5) { |a, b| a + b })
      end
      numbers = (1..size)
      expect(numbers).to(chain_as_ruby { |chain| chain.select(&:odd?).map { |x| x * x }.reduce { |a, b| a + b } })
      expect(numbers).to(chain_as_ruby { |chain| chain.select { |x| x > 300 }.reduce(7) { |a, b| a > b ? a : b } })
      expect(numbers).to(chain_as_ruby { |chain| chain.take_while { |x| x < 290 }.reduce(&:+) })
      expect(numbers).to(chain_as_ruby { |chain| chain.map { |x| x * 2 }.reduce(:+) })
      # Associative, but not commutative.
      expect(numbers).to(chain_as_ruby { |chain| chain.map { |x| [x, x] }.reduce { |a, b| [a[0], b[1]] } })
    end
    expect(sections { (1..256).plazy.map { |x| x * x }.reduce { |a, b| a + b } }).to eq 1
    expect(sections { (1..1000).plazy.map { |x| x * x }.select(&:even?).reduce { |a, b| a > b ? a : b } }).to eq 2
    expect(sections { (1..1000).plazy.map { |x| x * x }.select(&:even?).reduce { |a, b| a + b } }).to eq 1
    expect([[1, 0]]).to(chain_as_ruby { |chain| chain.flat_map { |x| x }.reduce { |a, b| a / b } })
  end

  it "combines lists and looks at neighbours" do
    backends.each do |backend|
      [[], [4], [4, 8, 15, 16, 23, 42]].each do |list|
        chain = list.plazy(backend: backend)
        doubled = list.map { |x| x * 2 }
        expect(chain.combine([1, 2], 5..9) { |x, y, z| y ? x + y : z }.to_a).to eq(list.pcombine([1, 2], 5..9) { |x, y, z| y ? x + y : z })
        expect(chain.map { |x| x * 2 }.stencil([-1, 1], 0) { |a, b| b - a }.to_a).to eq(doubled.pstencil([-1, 1], 0) { |a, b| b - a })
        expect(chain.map { |x| x * 2 }.stencil([-2, 0], 0) { |v| v[-1] + v[0] }.to_a).to eq(doubled.pstencil([-2, 0], 0) { |v| v[-1] + v[0] })
        expect(chain.stencil([-1, 0, 2], nil) { |(a, b, c)| [a, b, c] }.to_a).to eq(list.pstencil([-1, 0, 2], nil) { |(a, b, c)| [a, b, c] })
        expect(chain.stencil([-1, 0], 1, &:sum).map { |x| x + 1 }.to_a).to eq(list.pstencil([-1, 0], 1, &:sum).map { |x| x + 1 })
        expect(chain.stencil([0, 1], 0) { |a, b| a + b }.stencil([-1, 1], 0) { |a, b| a * b }.to_a)
          .to eq(list.pstencil([0, 1], 0) { |a, b| a + b }.pstencil([-1, 1], 0) { |a, b| a * b })
        expect(chain.select(&:even?).stencil([-1, 1], 0) { |a, b| a + b }.to_a).to eq(list.select(&:even?).pstencil([-1, 1], 0) { |a, b| a + b })
      end
      far = (1..400).to_a
      expect(far.plazy(backend: backend).take(350).stencil([-150, 150], 0) { |v| v[-150] * v[0] + v[150] }.to_a)
        .to eq(far.take(350).pstencil([-150, 150], 0) { |v| v[-150] * v[0] + v[150] })
      expect((1..9).plazy(backend: backend).drop(1).stencil([-1, 1], 0) { |v| v[-1] * v[1] }.to_a).to eq((2..9).pstencil([-1, 1], 0) { |v| v[-1] * v[1] })
      people = Array.new(5) { |i| DoAsRuby::Person.new(:a, i) }
      expect(people.plazy(backend: backend).stencil([-1, 1], nil) { |a, b| a.age + b.age }.to_a).to eq [nil, 2, 4, 6, nil]
      expect { [1, 2, 3].plazy(backend: backend).map { |x| x }.stencil([-1, 1], 0) { |v| v[5] }.to_a }.to raise_error(IndexError, "no offset reaches there")
      grid = [[1, 2], [3, 4]]
      expect(grid.plazy(backend: backend).stencil([[0, -1]], 7) { |v| v[0, -1] }.map(&:sum).to_a).to eq [8, 10]
      expect(grid.plazy(backend: backend).map { |row| row.map { |x| x * 2 } }.stencil([[0, -1]], 7) { |v| v[0, -1] }.to_a).to eq [[7, 2], [7, 6]]
    end
    expect([1, 2].plazy.zip([3].plazy.map { |x| x + 1 }).to_a).to eq [[1, 4], [2, nil]]
    expect((1..3).plazy.zip(1..).map { |x, y| x * y }.to_a).to eq [1, 4, 9]
  end

  it "gives the very objects", :stress do
    people = Array.new(40) { |i| DoAsRuby::Person.new(:a, i) }
    expect(people).to(chain_as_ruby { |chain| chain.select { |person| person.age > 30 }.reject { |person| person.age.odd? } })
    expect(people.plazy.select { |person| person.age > 30 }.first).to equal people[31]
    expect(people.plazy.map { |person| person }.min_by(&:age)).to equal people[0]
    expect(people.plazy.map(&:age).select(&:even?).group_by { |age| age % 3 }).to eq(people.map(&:age).select(&:even?).group_by { |age| age % 3 })
    expect(-> { Array.new(40) { |i| DoAsRuby::Person.new(:a, i) } }).to(chain_as_ruby { |chain| chain.map { |person| person.age += 1 }.map { |age| age * 2 } })
  end

  it "means what Ruby's chain means where stages meet" do
    list = [3, 1, 4, 1, 5, 9, 2, 6]
    expect(list).to(chain_as_ruby { |chain| chain.select(&:odd?).take(4).first(2) })
    expect(list).to(chain_as_ruby { |chain| chain.select(&:odd?).drop(1).first(2) })
    expect(list).to(chain_as_ruby { |chain| chain.take_while { |x| x < 5 }.drop(5) })
    expect(list).to(chain_as_ruby { |chain| chain.take_while { |x| x < 5 }.drop(2).each_slice(2) })
    expect(list).to(chain_as_ruby { |chain| chain.take_while { |x| x < 5 }.with_index.map { |x, i| x * i } })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| x + 1 }.drop(1).take(3).drop(1).with_index(5) })
    expect(list).to(chain_as_ruby { |chain| chain.flat_map { |x| x.odd? ? [x, x] : x }.drop(2).select(&:even?).first(6) })
    expect(list).to(chain_as_ruby { |chain| chain.each_slice(3).each_slice(2).map { |a, b| b ? a.sum + b.sum : a.sum } })
    expect(list).to(chain_as_ruby { |chain| chain.each_slice(2**62).map(&:size) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 3 / (x - 5) }.each_slice(2).first(2) })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| 3 / (x - 5) }.each_slice(2).first(3) })
    expect(list).to(chain_as_ruby { |chain| chain.with_index.reject { |_, i| i == 1 }.map { |x, i| x + i }.with_index.select { |_, j| j > 0 } })
    expect(list).to(chain_as_ruby { |chain| chain.zip(chain.map { |x| x + 1 }) })
    expect(list).to(chain_as_ruby { |chain| chain.zip(1.., { a: 1 }) })
    expect(list).to(chain_as_ruby { |chain| chain.take(2**40).take(1.9) })
    expect([[1, [2, 3]], [4, [5, 6]]]).to(chain_as_ruby { |chain| chain.reject { |a, (_, d)| a > d }.with_index.map { |(a, (b, d)), i| [a, b, d, i] } })
    expect([[1, 2], nil, 3]).to(chain_as_ruby { |chain| chain.map { |a, b| [a, b] } })
    expect([1.5, nil, :a, true, [1], "s"]).to(chain_as_ruby { |chain| chain.map { |x| x }.reject(&:nil?) })
    expect([nil, false, 1]).to(chain_as_ruby { |chain| [chain.first(2), chain.find(&:nil?), chain.filter_map { |x| x }.to_a, chain.any?, chain.none?(String)] })
    expect(5..1).to(chain_as_ruby { |chain| [chain.map { |x| x }.to_a, chain.reduce { |a, b| a + b }, chain.first] })
    f = ->(x) { x + 1 }
    expect(list).to(chain_as_ruby { |chain| chain.map(&f).map(&f).map(&:-@).map(&DoAsRuby::Half.method(:of)) })
  end

  it "has the rest of Enumerable" do
    list = [3, 1, 4, 1, 5]
    expect(list).to(chain_as_ruby { |chain| [chain.sort, chain.min(2), chain.max { |a, b| b <=> a }, chain.tally, chain.uniq.to_a, chain.each_cons(2).to_a] })
    expect(list).to(chain_as_ruby { |chain| [chain.inject(3, :*), chain.partition(&:odd?), chain.max_by { |x| -x }, chain.sort_by { |x| -x }, chain.minmax] })
    expect(list).to(chain_as_ruby { |chain| chain.map { |x| x * 2 }.each_with_object([]) { |x, all| all << x } })
    seen = []
    expect { (0..5).plazy.map { |x| 6 / (3 - x) }.each { |x| seen << x } }.to raise_error(ZeroDivisionError)
    expect(seen).to eq [2, 3, 6]
    expect((1..3).plazy.map { |x| x + 1 }.eager.with_index.to_a).to eq [[2, 0], [3, 1], [4, 2]]
    expect([(1..3).plazy.map { |x| x + 1 }, (1..3).plazy.select(&:odd?)].map { |chain| chain.eager.size }).to eq [3, nil]
  end

  it "knows its size before it runs, and shows itself without running" do
    chain = (1..7).plazy.map { |_| raise "never" }.drop(1).each_slice(4)
    expect([chain.size, chain.select { |_| true }.size, chain.take(1).size]).to eq [2, nil, 1]
    expect(chain.with_index(1).inspect)
      .to eq "#<Ikra::Lazy: #<Ikra::Lazy: #<Ikra::Lazy: #<Ikra::Lazy: #<Ikra::Lazy: 1..7>:map>:drop(1)>:each_slice(4)>:with_index(1)>"
    expect(chain.lazy).to equal chain
  end

  it "refuses what Ruby refuses, when the chain is made" do
    chain = [1].plazy
    expect { chain.map }.to raise_error(ArgumentError, "tried to call lazy map without a block")
    expect { chain.take(-1) }.to raise_error(ArgumentError, "attempt to take negative size")
    expect { chain.min_by(-1) { |x| x } }.to raise_error(ArgumentError, "negative size (-1)")
    expect { chain.max_by("1") { |x| x } }.to raise_error(TypeError, "no implicit conversion of String into Integer")
    expect { chain.each_slice(0) }.to raise_error(ArgumentError, "invalid slice size")
    expect { chain.zip(5) }.to raise_error(TypeError, "wrong argument type Integer (must respond to :each)")
    expect { chain.stencil([-1, [1, 2]], 0) { |a, b| a + b } }.to raise_error(ArgumentError, "offsets: [1, 2] is not an Integer")
    expect { chain.stencil([-1, 1], 0) { |a, b, c| a + b + c } }.to raise_error(ArgumentError, /the block has 3 parameters, and there are 2 offsets/)
    expect { [1].plazy(speed: 9) }.to raise_error(ArgumentError, /unknown option speed/)
    expect { (1..).plazy }.to raise_error(ArgumentError, /over Ranges of Integers with an end, not over 1\.\./)
  end

  it "explains which stages are one kernel, and why others are not" do
    told = ->(&block) { Ikra.explain(&block).chains.map(&:to_s) }
    expect(told.call { (1..9).plazy.map { |x| x + 1 }.select(&:even?).map { |x| x * 2 }.reduce { |a, b| a + b } }).to eq [<<~TEXT.chomp]
      plazy.map.select.map.reduce
        kernel 1: map, select, map, reduce
        # kernels: 1
    TEXT
    expect(told.call { (1..9).plazy.map { |x| x + 1 }.select(&:even?).with_index.map { |x, i| x * i }.flat_map { |x| [x] }.to_a }).to eq [<<~TEXT.chomp]
      plazy.map.select.with_index(0).map.flat_map
        kernel 1: map, select
          with_index asks for positions, which are known only after select has run
        kernel 2: with_index, map, flat_map
          then its arrays one after the other
        # kernels: 2
    TEXT
    expect(told.call { (1..9).plazy.select(&:even?).take(2).reduce { |a, b| a + b } }).to eq [<<~TEXT.chomp]
      plazy.select.take(2).reduce
        kernel 1: select
          then the first 2 of its values
          reduce is not in it: taking the first is done after the kernel
        kernel 2: reduce
          by itself
        # kernels: 2
    TEXT
    expect(told.call { (1..9).plazy(backend: :cpu).map { |x| x + 1 }.stencil([-1, 0, 1], 0) { |a, b, c| a + b + c }.to_a }).to eq [<<~TEXT.chomp]
      plazy.map.stencil([-1, 0, 1], 0)
        kernel 1: map, stencil
          stencil runs the blocks before it 3 times for each element (operations for each element: 12 to run them anew, they cannot be shared, 52 in a kernel before)
        # kernels: 1
    TEXT
    expect(told.call { (1..99).plazy(backend: :cpu).map { |x| x + 1 }.map { |x| x }.stencil([-9, 9], 0) { |v| v[0] }.to_a }).to eq [<<~TEXT.chomp]
      plazy.map.map.stencil([-9, 9], 0)
        kernel 1: map, map
          stencil looks at what another kernel has computed (operations for each element: 76 to run them anew, they cannot be shared, 52 in a kernel before)
        kernel 2: stencil
        # kernels: 2
    TEXT
    expect(Ikra.explain { [1].plazy.first }.to_s).to eq "plazy\n  # kernels: 0"
  end

  it "computes a stencil over a stencil anew, or behind a kernel of its own, whichever is less, and says so" do
    near = ->(chain) { chain.stencil([-1, 0, 1], 1.0) { |a, b, c| a + b - c } }
    far = ->(chain) { chain.stencil([-5, 5], 2.0) { |v| v[-5] * v[5] } }
    list = Array.new(300) { |i| (i * 7919 % 101) / 8.0 }
    nearby = list.pstencil([-1, 0, 1], 1.0) { |a, b, c| a + b - c }
    expected = { near => nearby.pstencil([-1, 0, 1], 1.0) { |a, b, c| a + b - c }, far => nearby.pstencil([-5, 5], 2.0) { |v| v[-5] * v[5] } }
    backends.each do |backend|
      expected.each do |last, values|
        chain = last.call(near.call(list.plazy(backend: backend)))
        expect([chain.to_a, chain.max, chain.count { |x| x > 3.0 }]).to eq([values, values.max, values.count { |x| x > 3.0 }])
      end
    end
    told = ->(last) { Ikra.explain { last.call(near.call(list.plazy(backend: :cpu))).sum }.chains.first.to_s.lines.drop(1).map { |line| line.strip[/\A[^(]*[^ (]/] } }
    expect(told.call(->(chain) { chain.stencil([0], 1.0) { |v| v[0] * 2 } })).to eq ["kernel 1: stencil, stencil, sum", "stencil runs the blocks before it once for each element", "# kernels: 1"]
    expect(told.call(far)).to eq ["kernel 1: stencil", "stencil looks at what another kernel has computed", "kernel 2: stencil, sum", "# kernels: 2"]
  end

  it "leaves nothing out that a program can have as a value" do
    backends.each do |backend|
      chain = [1, 2].plazy(backend: backend)
      expect { chain.map { |x| x > 1 ? x : Ikra::Hole }.to_a }.to raise_error(NameError)
      expect { Ikra::Hole }.to raise_error(NameError, /private constant/)
      expect(chain.map { |x| x > 1 ? x : :"Ikra::Lazy stop" }.take_while { |_| true }.to_a).to eq [:"Ikra::Lazy stop", 2]
    end
  end

  it "compiles a chain once, whatever its variables hold" do
    run = ->(k, list) { list.plazy.map { |x| x * k }.select { |x| x > k }.zip(list).to_a }
    run.call(2, [1, 2, 3])
    expect(Ikra.profile { run.call(3, (1..100).to_a) }.phases.fetch(:compile, 0)).to eq 0
  end

  it "runs as a chain of Ruby's where kernels cannot and that is wanted" do
    Ikra.logger = Class.new { def warn(_message) = nil }.new
    chain = (1..4).plazy(unsupported: :ruby).map { |x| x.to_s }
    expect(chain.with_index.map { |text, i| text * i }.to_a).to eq ["", "2", "33", "444"]
    expect(chain.select { |text| text > "1" }.first(2)).to eq %w[2 3]
    expect(chain.combine([5]) { |text, x| "#{text}#{x}" }.reduce("") { |a, b| a + b }).to eq "15234"
    expect(chain.stencil([-1, 1], "") { |a, b| a + b }.to_a).to eq ["", "13", "24", ""]
    expect(chain.find { |text| text == "3" }).to eq "3"
    expect(chain.each_slice(3).sum { |texts| texts.size }).to eq 4
    seen = []
    expect { (0..4).plazy(unsupported: :ruby).map { |x| (6 / (2 - x)).to_s }.each { |text| seen << text } }.to raise_error(ZeroDivisionError)
    expect(seen).to eq %w[3 6]
  ensure
    Ikra.logger = nil
  end

  it "says what a block may not do, at its place" do
    sum = 0
    expect { [1].plazy.map { |x| sum += x }.to_a }.to raise_error(Ikra::CompileError, /\A#{__FILE__}:#{__LINE__}:\d+: a captured Proc assigns sum/)
    expect { [1].plazy.map { |x| [x].pack("C") }.to_a }
      .to raise_error(Ikra::CompileError, /\A#{__FILE__}:#{__LINE__ - 1}:\d+: kernels do not know Array#pack/) { |error| expect(error.backtrace.first).to start_with(__FILE__) }
    expect { [1].plazy.map { |x, k: 1| x + k }.to_a }.to raise_error(Ikra::CompileError, /captured procs without keywords and block parameters only/)
    expect { [[1, 2]].plazy.map { |x, *| x }.to_a }.to raise_error(Ikra::CompileError, /this captured proc would take the array apart/)
    expect { [[1, 2]].plazy.map { |x,| x }.to_a }.to raise_error(Ikra::CompileError, /this captured proc would take the array apart/)
    expect { [1].plazy.map { |_x| break 3 }.to_a }.to raise_error(Ikra::CompileError, /would leave the method/)
  end

  it "works where the heap moves, in threads, and by the refinements", :stress do
    output = run_ruby(<<~RUBY)
      require "ikra/refinements"
      module Refined
        using Ikra::Refinements
        CHAIN = [1, 2].plazy.map { |x| x + 1 }
      end
      Person = Struct.new(:age)
      run = lambda do
        people = Array.new(40) { |i| Person.new(i) }
        chain = people.plazy(backend: :cpu).select { |person| person.age > 20 }.with_index.reject { |_, i| i == 3 }
        [chain.map { |person, i| person.age * i }.to_a, chain.first(2).map(&:first).map(&:age), people.plazy(backend: :cpu).map(&:age).reduce { |a, b| a + b }]
      end
      quiet = run.call
      GC.stress = true
      known = run.call
      GC.stress = false
      threads = Array.new(4) { Thread.new { Array.new(10) { run.call } } }
      p known == quiet, threads.flat_map(&:value).uniq == [quiet], Refined::CHAIN.to_a
    RUBY
    expect(output).to eq("true\ntrue\n[2, 3]\n")
  end

  it "gives each thread the kernel of its own chain" do
    person = Struct.new(:age)
    run = lambda do
      people = Array.new(40) { |i| person.new(i) }
      chain = people.plazy(backend: :cpu).select { |one| one.age > 20 }.with_index.reject { |_, i| i == 3 }
      [chain.map { |one, i| one.age * i }.to_a, chain.first(2).map(&:last), people.plazy(backend: :cpu).map(&:age).reduce { |a, b| a + b }]
    end
    quiet = run.call
    threads = Array.new(4) { Thread.new { Array.new(300) { run.call } } }
    expect(threads.flat_map(&:value).uniq).to eq [quiet]
  end

  it "keeps nothing of what blocks hold" do
    held = Class.new
    run = lambda do
      big = held.new
      [1, 2].plazy.map { |x| big ? x : 0 }.to_a
      nil
    end
    30.times { run.call }
    GC.start
    # The machine stack may still show the last ones.
    expect(ObjectSpace.each_object(held).count).to be <= 3
  end

  it "tries whether a reduction is associative" do
    expect { (1..9).plazy(check: :associative).map { |x| x * 2 }.reduce { |a, b| a - b } }.to raise_error(ArgumentError, /is not associative/)
    expect((1..9).plazy(check: :associative).map { |x| x * 2 }.reduce(1) { |a, b| a + b }).to eq 91
  end

  it "raises what the first element raises, though a later one ends the chain" do
    chain = (0...300).plazy.take_while { |x| 100 / (x - 5) < 90 }
    %i[min_by max_by].each do |name|
      expect { chain.map { |_| raise ArgumentError, "first" }.public_send(name) { |x| x } }.to raise_error(ArgumentError, "first")
      expect { chain.map { |x| x }.public_send(name) { |_| raise ArgumentError, "block" } }.to raise_error(ArgumentError, "block")
      expect { chain.map { |x| x }.public_send(name) { |x| x } }.to raise_error(ZeroDivisionError)
    end
  end

  it "looks for races" do
    list = [1, 2, 3]
    expect { list.plazy(check: :races).map { |x| list[0] += x }.to_a }.to raise_error(Ikra::RaceError)
  end

  { cpu: 1500, reference: 300 }.each do |backend, count|
    it "does what random chains of Ruby's do, on #{backend}" do
      skip "not this backend" unless backends.include?(backend)
      chains = Chains.new(RSpec.configuration.seed)
      outcome = lambda do |text|
        eval(text).inspect
      rescue Ikra::CompileError
        raise
      rescue StandardError => e
        [e.class, e.message.lines.first.chomp]
      end
      count.times do
        base, text = chains.next
        expected = outcome.call("#{base}.lazy#{text}")
        expect(outcome.call("#{base}.plazy(backend: :#{backend})#{text}")).to eq(expected), "#{base}.lazy#{text} is #{expected}"
      end
    end
  end

  it "runs a block for each of its values by peach, which may collect in variables and Hashes" do
    text = "the cat\nthe dog\n\na cat"
    %i[reference cpu].each do |backend|
      total, counts, lengths = 0, Hash.new(0), {}
      chain = (1..10).plazy(backend: backend).map { |x| x * 2 }.select { |x| x % 3 == 0 }
      expect(chain.peach { |x| total += x }).to equal chain
      lines = Ikra.lines(text: text, backend: backend)
      lines.peach do |line|
        line.split.each { |word| counts[word] += 1 }
        (lengths[line.size] ||= []) << line
      end
      expect([total, counts, lengths]).to eq [36, text.split.tally, text.lines.group_by(&:size)]
      expect(counts.keys).to eq text.split.uniq
      objects = Array.new(3) { |i| Struct.new(:a).new(i) }
      objects.plazy(backend: backend).select { |o| o.a > 0 }.peach(2) { |o| o.a += Ikra.tick + 1 }
      expect(objects.map(&:a)).to eq [0, 4, 5]
      expect { lines.map(&:size).peach { |size| total += 6 / (size - 1) } }.to raise_error(ZeroDivisionError)
      expect(total).to eq 36
    end
    expect { (1..3).plazy.peach }.to raise_error(ArgumentError, "tried to call lazy peach without a block")
    expect { (1..3).plazy.peach(-1) { nil } }.to raise_error(ArgumentError, "ticks: -1 is negative")
  end

  it "gives lists of its own, not its base" do
    base = [1, 2].freeze
    [base.plazy, base.plazy.take(9), base.plazy.drop(0)].each do |chain|
      %i[to_a force entries].each { |name| expect(chain.public_send(name) << 3).to eq [1, 2, 3] }
    end
    expect(base).to eq [1, 2]
    expect([4].plazy.map { |x| x + 1 }.freeze.to_a).to eq [5]
  end

  it "does with indices, starts and nothing to zip with what Ruby's does" do
    expect([5, 6]).to chain_as_ruby { |chain| chain.zip.to_a }
    expect([5, 6]).to chain_as_ruby { |chain| chain.zip.with_index.to_a }
    expect([5, 6]).to chain_as_ruby { |chain| chain.with_index.with_index { |a, _| a }.map { |x| x }.to_a }
    expect([5, 6]).to chain_as_ruby { |chain| [].tap { |seen| chain.each_with_index { |x, i| seen << [x, i] } } }
    expect([3, 5, 0.6, -2, 0.4]).to chain_as_ruby { |chain| chain.sum(0.3) }
    expect([]).to chain_as_ruby { |chain| chain.sum(-0.0).to_s }
    expect([1.5, 2]).to chain_as_ruby { |chain| chain.sum(2i) }
    expect([2, 0]).to chain_as_ruby { |chain| %i[min max].map { |name| chain.map { |x| 1 / x }.public_send(name, 0) } }
    expect([2, 0]).to chain_as_ruby { |chain| chain.map { |x| 1 / x }.min_by(0) { |x| x } }
  end

  it "takes composed Procs" do
    expect([-1].plazy.map(&(:abs.to_proc >> :succ.to_proc)).to_a).to eq [2]
  end

  it "comes to an end in Ranges of any length" do
    expect(1..10**10).to chain_as_ruby { |chain| chain.map { |x| x }.take_while { |x| x < 3 }.to_a }
    expect(1..2**62).to chain_as_ruby { |chain| chain.take_while { |x| x < 700 }.reduce { |a, b| a + b } }
    chain = (1..10**12).plazy
    expect([chain.count, chain.sum, chain.min, chain.drop(2).minmax]).to eq [10**12, (1..10**12).sum, 1, [3, 10**12]]
  end

  it "does not take one method for another that begins on its line" do
    type = Class.new { %w[+ -].each { |sign| class_eval("def go#{sign.ord}(x) = x #{sign} 1; private def other#{sign.ord}(x) = x", "one_line.rb", 1) } }
    expect(%i[go45 go43].map { |name| [10].plazy.map(&type.new.method(name)).to_a }).to eq [[9], [11]]
    box = Struct.new(:seen) { attr_accessor :x }.new
    expect { [10].plazy.map(&box.method(:x=)).to_a }.to raise_error(Ikra::CompileError)
    twice = Class.new do
      def inc(x) = x + 1
      alias_method :more, :inc
    end
    expect([10].plazy.map(&twice.new.method(:more)).to_a).to eq [11]
  end

  it "leaves a program's variables alone, whatever they are called" do
    expect(run_ruby(<<~RUBY)).to eq("[0, 6, 0]\n[7, nil, 5]\n")
      x1, at1, i1 = 7, nil, 5
      p [1, 2, 3].plazy.map { |x| x + 1 }.stencil([-1, 1], 0) { |a, b| a + b }.to_a
      p [x1, at1, i1]
    RUBY
  end
end
