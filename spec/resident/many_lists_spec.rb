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
