# frozen_string_literal: true

# One block that runs repeatedly over the same objects, which change between its calls. A call begins with the tables of
# the one before, and must notice what has changed.
module Again
  # A short `inspect`. Errors show objects, and each object leads to all others.
  module Short
    def inspect = "#<#{self.class}>"
  end

  class Town
    include Short
    attr_accessor :ways, :size, :number, :name

    def initialize(number)
      @number = number
      @size = number % 7 + 1
      @name = "town #{number % 50}"
      @ways = []
    end
  end

  class Village < Town
    def initialize(number)
      super
      @size = 100
    end
  end

  class Purse
    attr_accessor :coins

    def initialize(coins) = @coins = coins
  end

  # A friend, who does something for others.
  class Friend
    include Short
    attr_accessor :friend, :done

    def initialize = @done = 0

    def help = @friend.done += 1
  end

  class GoodFriend < Friend
    def help = @friend.done += 2
  end

  class BestFriend < Friend
    def help = @friend.done += 3
  end

  class Walker
    include Short
    attr_accessor :town, :steps, :mood, :purse, :hat

    def initialize(town, steps)
      @town = town
      @steps = steps
      @mood = 0.5
      @purse = Purse.new(steps)
    end

    def pace = 1

    def walk(inn)
      @steps += pace
      @purse.coins += inn[@steps % inn.size].size
      @mood = @mood * 0.5 + @steps
      here = @town
      return unless here

      @steps += here.size + here.name.size
      @town = here.ways[@steps % here.ways.size]
    end
  end

  module Slow
    def pace = 0
  end

  class Runner < Walker
    def pace = @hat ? 3 : 2
  end

  # The same objects twice: one half for Ikra, the other for Ruby.
  class World
    include Short
    attr_accessor :walkers, :towns, :inn

    def initialize(count, towns)
      @towns = Array.new(towns) { |number| Town.new(number) }
      @towns.each_with_index { |town, i| town.ways.push(@towns[(i * 31 + 1) % towns], @towns[i - 1], town) }
      @walkers = Array.new(count) { |i| (i % 3 == 1 ? Runner : Walker).new(@towns[i * 17 % towns], i % 11) }
      @inn = @towns.first(5)
    end

    def walk(backend)
      walkers, inn = @walkers, @inn
      # One block of code, so that each call has the same one.
      backend ? walkers.peach(backend: backend) { |walker| walker.walk(inn) } : walkers.each { |walker| walker.walk(inn) }
    end

    def state
      people = walkers.map { |walker| [walker.class, walker.town&.number, walker.steps, walker.mood, walker.purse.coins, walker.hat] }
      [people, towns.map { |town| [town.size, town.name, town.ways.map(&:number)] }, inn.map(&:number)]
    end

    def town(number) = Town.new(number).tap { |town| town.ways.push(towns[number % towns.size], towns[0]) }
  end

  def self.open_ways(town) = town.ways.frozen? ? town.ways = town.ways.dup : town.ways

  CHANGES = {
    "nothing" => ->(_world, _random) {},
    "towns of some" => ->(world, random) { 50.times { world.walkers.sample(random: random).town = world.towns.sample(random: random) } },
    "a new town" => ->(world, random) { world.walkers.sample(random: random).town = world.town(random.rand(10_000)) },
    "a town of a new class" => ->(world, random) { world.walkers.sample(random: random).town = Village.new(3).tap { |town| town.ways.push(town, world.towns[1]) } },
    "no town" => ->(world, random) { world.walkers.sample(random: random).town = nil },
    "ways" => ->(world, random) { open_ways(world.towns.sample(random: random))[1] = world.towns.sample(random: random) },
    "more ways" => ->(world, random) { open_ways(world.towns.sample(random: random)) << world.towns.sample(random: random) },
    "other ways" => ->(world, random) { world.towns.sample(random: random).tap { |town| town.ways = town.ways.rotate } },
    "ways that two have" => ->(world, random) { world.towns.sample(random: random).ways = world.towns.sample(random: random).ways },
    "frozen ways" => ->(world, random) { world.towns.sample(random: random).ways.freeze },
    "the end of a town" => ->(world, random) { world.towns.sample(random: random).tap { |gone| world.towns.each { |town| open_ways(town).map! { |way| way.equal?(gone) ? world.towns[2] : way } } } },
    "a size" => ->(world, random) { world.towns.sample(random: random).size += 1 },
    "an Integer that is a Float" => ->(world, random) { world.walkers.sample(random: random).steps += 0.0 },
    "a Float that is an Integer" => ->(world, random) { world.walkers.sample(random: random).mood = 3 },
    "all numbers as they were" => ->(world, _random) { world.walkers.each { |walker| walker.steps = walker.steps.to_i % 1000 } },
    "a hat" => ->(world, random) { world.walkers.sample(random: random).hat = true },
    "no hat" => ->(world, random) { world.walkers.sample(random: random).then { |walker| walker.remove_instance_variable(:@hat) if walker.instance_variable_defined?(:@hat) } },
    "an ivar that nobody asks for" => ->(world, random) { world.walkers.sample(random: random).instance_variable_set(:@shoes, [1]) },
    "a singleton method" => ->(world, random) { world.walkers.sample(random: random).extend(Again::Slow) },
    "a singleton class of a town" => ->(world, random) { world.towns.sample(random: random).singleton_class },
    "a purse that two have" => ->(world, random) { world.walkers.sample(random: random).purse = world.walkers.sample(random: random).purse },
    "purses of their own" => ->(world, _random) { world.walkers.each { |walker| walker.purse = walker.purse.dup } },
    "purses of others" => ->(world, random) { world.walkers.sample(2, random: random).tap { |a, b| a.purse, b.purse = b.purse, a.purse } },
    "a name" => ->(world, random) { world.towns.sample(random: random).name << "!" },
    "a name in another encoding" => ->(world, random) { world.towns.sample(random: random).name.replace("zwölf") },
    "a name of its own" => ->(world, random) { world.towns.sample(random: random).tap { |town| town.name = town.name.dup } },
    "places in the list" => ->(world, random) { world.walkers.shuffle!(random: random) },
    "places of neighbours in the list" => ->(world, random) { random.rand(world.walkers.size - 1).then { |at| world.walkers[at, 2] = world.walkers[at, 2].reverse } },
    "one twice in a row in the list" => ->(world, random) { random.rand(world.walkers.size - 1).then { |at| world.walkers[at + 1] = world.walkers[at] } },
    "another in the list" => ->(world, random) { world.walkers << Runner.new(world.towns.sample(random: random), 5) },
    "one less in the list" => ->(world, random) { world.walkers.delete_at(random.rand(world.walkers.size)) },
    "one for another in the list" => ->(world, random) { world.walkers[random.rand(world.walkers.size)] = Walker.new(world.towns.sample(random: random), 1) },
    "one twice in the list" => ->(world, random) { world.walkers[random.rand(world.walkers.size)] = world.walkers.sample(random: random) },
    "nobody twice in the list" => ->(world, _random) { world.walkers.uniq!(&:__id__) },
    "a copy of the list" => ->(world, _random) { world.walkers = world.walkers.dup },
    "a frozen copy of the list" => ->(world, _random) { world.walkers = world.walkers.dup.freeze },
    "an inn of others" => ->(world, random) { world.inn = world.towns.sample(5, random: random) },
    "a longer inn" => ->(world, random) { world.inn = world.towns.sample(world.inn.size + 1, random: random) },
    "the heap" => ->(_world, _random) { GC.compact },
    "what is garbage" => ->(_world, _random) { GC.start }
  }.freeze
  # A change of a list, which first makes another list where this one is frozen.
  CHANGES_LIST = /\A(places in|places of neighbours in|another in|one less in|one for another in|one twice in|one twice in a row in|nobody twice in) the list/.freeze

  def self.change(world, name, seed)
    world.walkers = world.walkers.dup if world.walkers.frozen? && name.match?(CHANGES_LIST)
    CHANGES.fetch(name).call(world, Random.new(seed))
  end
end
