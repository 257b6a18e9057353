# frozen_string_literal: true

# Counters of every plain kind, and of another one.
class ResidentCounter
  attr_accessor :count, :share, :even, :label
  attr_reader :ticks

  alias put count=

  def initialize(count)
    @count = count
    @share = count * 0.5
    @even = count.even?
    @label = nil
    @ticks = 0
  end

  def tick
    @ticks += 1
    @count += 1
    @share += 0.25
    @even = !@even
  end

  def double = @count *= 2
end

class ResidentTeller < ResidentCounter
  def count = super + 1000
end

ResidentDuo = Struct.new(:left, :right)

RSpec.describe "A slot of a resident object" do
  # The value of an object's ivar, read unnoticed.
  count_of = ResidentCounter.instance_method(:count)
  share_of = ResidentCounter.instance_method(:share=)

  def counters = Array.new(20) { |i| i % 4 == 3 ? ResidentTeller.new(i) : ResidentCounter.new(i) }

  def state(list) = list.map { |counter| [counter.count, counter.share, counter.even, counter.ticks, counter.label] }

  on_every_backend do
    it "is read by itself at first, and with all others after a few" do
      list = Array.new(20) { |i| ResidentCounter.new(i) }
      Ikra.resident(list) do
        2.times { list.peach(backend:, &:tick) }
        expect([list[3].count, list[3].even, list[5].share]).to eq([5, false, 3.0])
        expect([count_of.bind_call(list[3]), count_of.bind_call(list[7])]).to eq([3, 7])
        expect([list[3].ticks, list[7].count]).to eq([2, 9])
        expect([count_of.bind_call(list[3]), count_of.bind_call(list[9])]).to eq([5, 11])
        list.peach(backend:, &:tick)
        expect([list[9].count, count_of.bind_call(list[9])]).to eq([12, 11])
      end
      expect(list.map(&:count)).to eq(Array.new(20) { |i| i + 3 })
    end

    it "is written where kernels look, and nothing is looked for anew" do
      given = lambda do |list|
        list[3].count = 50
        list[4].put(60)
        list[4].share = 0.125
        list[5].even = true
      end
      plain = counters
      2.times { plain.each(&:tick) }
      plain.each(&:double)
      plain.each(&:tick)
      given.call(plain)
      plain.each(&:tick)
      list = counters
      tick = -> { list.peach(backend:, &:tick) }
      Ikra.resident(list) do
        2.times { tick.call }
        list.peach(backend:, &:double)
        tick.call
        given.call(list)
        # Kernels that read anew see unnoticed changes.
        share_of.bind_call(list[6], 99.0)
        tick.call
        expect(state(list)).to eq(state(plain))
      end
      expect(state(list)).to eq(state(plain))
    end

    it "may take what its column cannot hold, and then everything is looked at anew" do
      list = counters
      Ikra.resident(list) do
        list.peach(backend:, &:tick)
        list[1].share = 3
        list[2].label = :new
        list.peach(backend:) { |counter| counter.share += counter.label ? 1 : 0.5 }
        expect(list.first(4).map(&:share)).to eq([0.75, 3.5, 2.25, 2.25])
      end
      expect(list.first(4).map(&:share)).to eq([0.75, 3.5, 2.25, 2.25])
    end

    it "may be a Struct's member" do
      pairs = Array.new(6) { |i| ResidentDuo.new(i, i * 1.5) }
      Ikra.resident(pairs) do
        3.times do |k|
          pairs.peach(backend:) { |pair| pair.left += 1 }
          expect([pairs[2].left, pairs[2].right]).to eq([3 + k + (k.positive? ? 10 * k : 0), 3.0])
          pairs[2].left += 10
        end
      end
      expect(pairs.map(&:left)).to eq([3, 4, 35, 6, 7, 8])
    end

    it "is not written to a frozen object" do
      list = counters
      Ikra.resident(list) do
        expect(list.pmap(backend:, &:count)[0]).to eq(0)
        list[0].freeze
        expect { list[0].count = 7 }.to raise_error(FrozenError)
        expect(list.pmap(backend:, &:count)[0]).to eq(0)
      end
    end
  end

  it "comes to what it comes to without a scope, whoever reads and writes, in any order" do
    run = lambda do |list, seed, every|
      random = Random.new(seed)
      Array.new(40) do
        at = random.rand(list.size)
        number = random.rand(100)
        case random.rand(9)
        when 0, 1 then every.call(:tick) && nil
        when 2 then every.call(:double) && nil
        when 3 then every.call(:total)
        when 4 then [list[at].count, list[at].share]
        when 5 then [list[at].ticks, list[at].even]
        when 6 then list[at].count = number
        when 7 then list[at].share = number * 0.5
        else list[at].tick
        end
      end
    end
    80.times do |seed|
      plain = counters
      expected = run.call(plain, seed, ->(step) { step == :total ? plain.sum { |counter| counter.count + counter.share } : plain.each(&step) })
      list = counters
      steps = {
        tick: -> { list.peach(backend: :cpu, &:tick) }, double: -> { list.peach(backend: :cpu, &:double) },
        total: -> { list.pmap(backend: :cpu) { |counter| counter.count + counter.share }.sum }
      }
      found = Ikra.resident(list) { run.call(list, seed, ->(step) { steps.fetch(step).call }) }
      expect([found, state(list)]).to eq([expected, state(plain)])
    end
  end
end
