# frozen_string_literal: true

# A part of one of several lists.
class PartOfMany
  attr_accessor :a, :b, :link, :weather

  def initialize(number, weather)
    @a = number
    @b = number / 4.0
    @link = self
    @weather = weather
  end
end

class OddPartOfMany < PartOfMany; end

# What all parts look at.
class WeatherOfMany
  attr_accessor :wind

  def initialize = @wind = 2
end

RSpec.describe "Ikra.resident with several lists" do
  extend MDArrays::Groups

  blocks = [
    ->(list, run, k) { list.public_send(run) { |one| one.a += one.weather.wind + k } },
    ->(list, run, k) { list.public_send(run) { |one| one.b = (one.b * 0.5) + one.link.a + k } },
    ->(list, run, k) { list.public_send(run) { |one| one.link.b += k if one.link.equal?(one) } },
    ->(list, run, _) { list.public_send(run) { |one| one.link = one } },
    ->(list, run, k) { list.public_send(run) { |one| one.is_a?(OddPartOfMany) ? one.a -= k : one.b -= 1.0 } },
    ->(list, run, k) { list.first(1).public_send(run) { |one| one.weather.wind += k } }
  ].freeze

  def parts(dice)
    weather = WeatherOfMany.new
    all = Array.new(24) { |i| (i % 3 == 1 ? OddPartOfMany : PartOfMany).new(i, weather) }
    all.each_slice(6) { |list| list.each_with_index { |one, i| one.link = list[i - 1] } }
    dice.rand(12).zero? ? all.each { |one| one.link = all.sample(random: dice) } : all
  end

  # Lists that have no parts in common, and others that have.
  def lists(all, dice) = all.each_slice(6).to_a + [all, all.sample(9, random: dice), all.grep(OddPartOfMany), all.first(7)]

  def state(all) = all.map { |one| [one.a, one.b, all.index(one.link), one.weather.wind] }

  on_all_backends do
    it "does what Ruby does, whatever lists follow each other" do
      wrong = Array.new(8) do |seed|
        dice = Random.new(seed)
        # Mostly the lists that have no parts in common.
        steps = Array.new(40) { [dice.rand(3).zero? ? dice.rand(8) : dice.rand(4), dice.rand(blocks.size), dice.rand(4), dice.rand(10)] }
        found = %i[peach each].map do |run|
          all = parts(Random.new(seed))
          chosen = lists(all, Random.new(seed))
          seen = []
          go = lambda do
            steps.each do |list, block, k, look|
              blocks[block].call(chosen[list], run, k)
              seen << all[k].a if look == 1
              all[list].b += k if look == 2
              all[list].instance_variable_set(:@a, k) if look == 3
            end
          end
          run == :peach ? Ikra.resident(arrays: (:fixed if seed.odd?), &go) : go.call
          [seen, state(all)]
        end
        [seed, found] unless found.uniq.one?
      end
      expect(wrong.compact).to eq([])
    end

    it "keeps the columns of each list where they are" do
      worlds = Array.new(40) { parts(Random.new(1)).first(6) }
      all = -> { worlds.each { |list| list.peach { |one| one.a += one.weather.wind } } }
      Ikra.resident(arrays: :fixed) do
        2.times { all.call }
        expect(Ikra.profile { 3.times { all.call } }.phases).to include(trace: 0.0, pack: 0.0)
      end
      expect(worlds.flatten.map(&:a)).to eq(worlds.flat_map { (0..5).map { |i| i + 10 } })
    end

    it "keeps the columns where kernels hold all objects that the block makes in registers" do
      list, plain = Array.new(2) { parts(Random.new(1)) }
      pace = Struct.new(:x, :y) { define_method(:+) { |other| self.class.new(x + other.x, y + other.y) } }
      zero = pace.new(1, 0)
      step = ->(all, run) { all.public_send(run) { |one| one.a += (zero + pace.new(one.weather.wind, 2)).x } }
      Ikra.resident(arrays: :fixed) do
        2.times { step.call(list, :peach) }
        expect(Ikra.profile { 3.times { step.call(list, :peach) } }.phases).to include(trace: 0.0, pack: 0.0)
      end
      5.times { step.call(plain, :each) }
      expect(state(list)).to eq(state(plain))
    end

    it "does what Ruby does where each thread has lists of its own, and some parts are in two of them" do
      all, plain = Array.new(2) { parts(Random.new(11)) }
      own = ->(parts) { parts.each_slice(6).to_a.push([parts[2], parts[9]]) }
      own.call(plain).each { |list| 20.times { list.each { |one| one.a += one.link.b.floor + 1 } } }
      own.call(all).first(4).map do |list|
        Thread.new { Ikra.resident { 20.times { list.peach { |one| one.a += one.link.b.floor + 1 } } } }
      end.each(&:join)
      Ikra.resident do
        Thread.new { Ikra.resident { 10.times { own.call(all).last.peach { |one| one.a += one.link.b.floor + 1 } } } }.join
        10.times { own.call(all).last.peach { |one| one.a += one.link.b.floor + 1 } }
      end
      expect(state(all)).to eq(state(plain))
    end
  end
end

RSpec.describe "Sections at once in Ikra.resident" do
  extend MDArrays::Groups

  def parts
    weather = WeatherOfMany.new
    Array.new(24) { |i| (i % 3 == 1 ? OddPartOfMany : PartOfMany).new(i, weather) }
  end

  def state(all) = all.map { |one| [one.a, one.b] }

  # A block that takes long enough to leave the caller's thread.
  def long(list, run, ticks)
    list.public_send(run) { |one| ticks.times { |i| one.b += (one.a * i) % 7 } }
  end

  on_all_backends do
    it "run over lists that stay where they are" do
      all, plain = parts, parts
      5.times { plain.each_slice(6) { |list| long(list, :each, 3000) } }
      Ikra.resident do
        5.times { Ikra.concurrently { all.each_slice(6).to_a.each { |list| long(list, :peach, 3000) } } }
      end
      expect(state(all)).to eq(state(plain))
      lists = plain.each_slice(6).to_a
      all, plain = lists.flatten, all
      Ikra.resident do
        4.times { Ikra.concurrently { lists.each { |list| long(list, :peach, 3000) } } }
      end
      4.times { plain.each_slice(6) { |list| long(list, :each, 3000) } }
      expect(state(all)).to eq(state(plain))
    end

    it "leave the caller's thread, one for each list" do
      all = parts
      lists = all.each_slice(6).to_a
      step = -> { lists.map { |list| list.peach { |one| one.a += 1 } } }
      Ikra.resident do
        # Columns are packed one list after the other.
        step.call
        Ikra.concurrently(policy: :plain) { expect(step.call).to all(be_under_way) }
      end
      expect(all.map(&:a)).to eq((2..25).to_a)
    end

    it "end before Ruby reads or writes what they may change" do
      all, plain = parts, parts
      seen = [[all, :peach], [plain, :each]].map do |list, run|
        found = []
        go = lambda do
          3.times do |turn|
            long(list, run, 2000)
            found << list[turn].b
            long(list, run, 2000)
            list[turn].b = -1.0
            long(list, run, 2000)
            list[turn].instance_variable_set(:@a, turn)
          end
        end
        run == :peach ? Ikra.resident { Ikra.concurrently(&go) } : go.call
        found
      end
      expect(seen.first).to eq(seen.last)
      expect(state(all)).to eq(state(plain))
    end

    it "end with the scope, however it is left" do
      all, plain = parts, parts
      Ikra.resident { 2.times { all.async.peach { |one| 2000.times { |i| one.b += i % 7 } } } }
      expect { Ikra.resident { all.async.peach { |one| one.a += 1 } and raise IndexError } }.to raise_error(IndexError)
      Ikra.concurrently { Ikra.resident { all.peach { |one| one.a += 1 } } }
      [1].each { Ikra.resident { all.async.peach { |one| one.a += 1 } and break } }
      # Nothing of it is left, so that later calls need not ask.
      expect(Thread.current[:__ikra_gate]).to be_nil
      plain.each { |one| 4000.times { |i| one.b += (i % 2000) % 7 } }
      expect(state(all)).to eq(plain.map { |one| [one.a + 3, one.b] })
    end

    it "write nothing behind one that raises" do
      first, second = parts.each_slice(12).to_a
      before = state(second)
      Ikra.resident do
        expect do
          Ikra.concurrently do
            long(first, :peach, 2000)
            first.peach { |one| one.a = 1 / (one.a - 11) }
            second.peach { |one| one.a = -1 }
          end
        end.to raise_error(ZeroDivisionError)
        expect(first.map(&:a)).to eq((0..11).to_a)
        second.peach { |one| one.b += 0.0 }
      end
      expect(state(second)).to eq(before)
    end
  end
end
