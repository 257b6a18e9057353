# frozen_string_literal: true

require "ikra"

# Actors of other classes on the streets of examples/traffic. A second of an actor has the same arithmetic in all.
class Traffic::Benchmark
  # The classes of a phrasing in place of those of the example. They are made from kind, street, progress, own velocity
  # and dice.
  module Made
    def state(input)
      streets = streets_of(input)
      progress, own, street, dice = %i[progress own street dice].map { |name| input.fetch(name).values }
      kinds = [:car] * input[:cars] + [:bus] * input[:buses] + [:pedestrian] * input[:pedestrians]
      actors = kinds.each_index.map { |index| actor(kinds[index], streets[street[index]], progress[index], own[index], dice[index]) }
      [input.fetch(:order).values.map { |index| actors[index] }, WEATHERS[input[:weather]], input[:ticks], actors, streets]
    end

    def compute((actors, weather, ticks)) = actors.peach(ticks) { |actor| actor.move(weather) }
  end

  phrasing "subclasses, ticks by times in the block" do
    def compute((actors, weather, ticks)) = actors.peach { |actor| ticks.times { actor.move(weather) } }
  end

  phrasing "subclasses, ticks by while in the block" do
    def compute((actors, weather, ticks))
      actors.peach do |actor|
        tick = 0
        while tick < ticks
          actor.move(weather)
          tick += 1
        end
      end
    end
  end

  phrasing "subclasses, case over classes in the block" do
    def compute((actors, weather, ticks))
      actors.peach(ticks) do |actor|
        case actor
        when Traffic::SteadyPedestrian then actor.move(nil)
        when Traffic::SteadyCar, Traffic::SteadyBus then actor.move(weather)
        end
      end
    end
  end

  # One class, whose kind is a Symbol.
  class Mover
    attr_reader :street, :progress, :dice

    def initialize(kind, street, progress, own, dice)
      @kind = kind
      @street = street
      @progress = progress
      @own = own
      @dice = dice
    end

    def move(weather)
      case @kind
      when :car then drive(weather == :rainy ? 0.8 : weather == :snowy ? 0.5 : 1.0) # rubocop:disable Style/NestedTernaryOperator
      when :bus then drive(weather == :sunny ? 1.0 : 0.7)
      when :pedestrian then advance((-2.0 + 6.0 * roll / 2_147_483_648.0) * Traffic::MPH, @street.neighbors)
      end
    end

    private

    def drive(grip) = advance([@own, @street.max_velocity].min * grip, @street.roads)

    def roll
      @dice = (@dice * 1_103_515_245 + 12_345) & 0x7fffffff
    end

    # Guards with early returns.
    def advance(distance, ways)
      @progress += distance
      return @progress = 0.0 if @progress < 0.0
      return if @progress < @street.length
      return @progress = @street.length if ways.empty?

      @street = ways[(roll >> 16) % ways.size]
      @progress = 0.0
    end
  end

  phrasing "one class, case over a Symbol, guards, min of an Array" do
    include Made

    def actor(...) = Mover.new(...)
  end

  # Attributes in place of ivars, methods cut small.
  class Attributes
    attr_reader :max_velocity
    attr_accessor :street, :progress, :dice

    def initialize(_kind, street, progress, own, dice)
      self.street = street
      self.progress = progress
      self.dice = dice
      @max_velocity = own
    end

    def move(weather)
      self.progress = progress + distance(weather)
      return stay if before_street?

      turn if after_street?
    end

    private

    def before_street? = progress < 0.0
    def after_street? = progress >= street.length
    def dead_end? = ways.empty?
    def next_street = ways[(roll >> 16) % ways.size]
    def roll = self.dice = (dice * 1_103_515_245 + 12_345) & 0x7fffffff
    def stay = self.progress = 0.0
    def turn = dead_end? ? self.progress = street.length : enter(next_street)

    def enter(other)
      self.street = other
      stay
    end
  end

  # One that drives.
  class AttributesVehicle < Attributes
    private

    def velocity = max_velocity < street.max_velocity ? max_velocity : street.max_velocity
    def distance(weather) = velocity * grip(weather)
    def ways = street.roads
  end

  # One with a car's grip.
  class AttributesCar < AttributesVehicle
    FACTORS = { sunny: 1.0, rainy: 0.8, snowy: 0.5 }.freeze

    private

    def grip(weather) = FACTORS[weather]
  end

  # One with a bus's grip.
  class AttributesBus < AttributesVehicle
    private

    def grip(weather) = weather == :sunny ? 1.0 : 0.7
  end

  # One that walks.
  class AttributesPedestrian < Attributes
    private

    def distance(_weather) = (-2.0 + 6.0 * roll / 2_147_483_648.0) * Traffic::MPH
    def ways = street.neighbors
  end

  phrasing "subclasses, attributes, methods cut small, a Hash of grips" do
    include Made

    def actor(kind, *rest) = { car: AttributesCar, bus: AttributesBus, pedestrian: AttributesPedestrian }[kind].new(kind, *rest)
  end

  # One long method for each class, with temporaries.
  class Long
    attr_reader :street, :progress, :dice

    def initialize(_kind, street, progress, own, dice)
      @street = street
      @progress = progress
      @own = own
      @dice = dice
    end
  end

  # One that drives: its weather is a factor.
  class LongVehicle < Long
    def move(grip)
      street = @street
      limit = street.max_velocity
      progress = @progress + (limit > @own ? @own : limit) * grip
      if progress < 0.0
        progress = 0.0
      elsif progress >= street.length
        ways = street.roads
        count = ways.size
        if count > 0
          dice = (@dice * 1_103_515_245 + 12_345) & 0x7fffffff
          @street = ways[(dice >> 16) % count]
          @dice = dice
          progress = 0.0
        else
          progress = street.length
        end
      end
      @progress = progress
    end
  end

  # One that walks.
  class LongPedestrian < Long
    def move(_grip)
      street = @street
      dice = (@dice * 1_103_515_245 + 12_345) & 0x7fffffff
      progress = @progress + (-2.0 + 6.0 * dice / 2_147_483_648.0) * Traffic::MPH
      if progress < 0.0
        progress = 0.0
      elsif progress >= street.length
        ways = street.neighbors
        count = ways.size
        if count > 0
          dice = (dice * 1_103_515_245 + 12_345) & 0x7fffffff
          @street = ways[(dice >> 16) % count]
          progress = 0.0
        else
          progress = street.length
        end
      end
      @progress = progress
      @dice = dice
    end
  end

  # Buses have a class of their own only for their grip.
  class LongBus < LongVehicle
  end

  phrasing "subclasses, one long method each, temporaries, grips as numbers" do
    include Made

    def actor(kind, *rest) = { car: LongVehicle, bus: LongBus, pedestrian: LongPedestrian }[kind].new(kind, *rest)

    def compute((actors, weather, ticks))
      car, bus = GRIPS.fetch(weather)
      actors.peach(ticks) { |actor| actor.move(actor.is_a?(LongBus) ? bus : car) }
    end
  end

  phrasing "flat Arrays of fields, streets by number" do
    def state(input)
      columns = %i[length limit neighbors_offset neighbors roads_offset roads own].map { |name| input.fetch(name).values }
      [columns, %i[progress street dice].map { |name| input.fetch(name).values.dup },
       [input[:cars], input[:cars] + input[:buses]], [input[:car_grip], input[:bus_grip]], input[:ticks]]
    end

    def outputs((_, (progress, street, dice), *), _result) = { progress: progress, street: street, dice: dice }

    def compute(((length, limit, neighbors_offset, neighbors, roads_offset, roads, own), (progress, street, dice), (cars, vehicles), (car_grip, bus_grip), ticks))
      (0...progress.size).peach(ticks) do |i|
        here = street[i]
        if i < vehicles
          offset = roads_offset
          ways = roads
          grip = i < cars ? car_grip : bus_grip
          distance = (own[i] < limit[here] ? own[i] : limit[here]) * grip
        else
          offset = neighbors_offset
          ways = neighbors
          dice[i] = (dice[i] * 1_103_515_245 + 12_345) & 0x7fffffff
          distance = (-2.0 + 6.0 * dice[i] / 2_147_483_648.0) * Traffic::MPH
        end
        progress[i] += distance
        if progress[i] < 0.0
          progress[i] = 0.0
        elsif progress[i] >= length[here]
          count = offset[here + 1] - offset[here]
          if count == 0
            progress[i] = length[here]
          else
            dice[i] = (dice[i] * 1_103_515_245 + 12_345) & 0x7fffffff
            street[i] = ways[offset[here] + (dice[i] >> 16) % count]
            progress[i] = 0.0
          end
        end
      end
    end
  end

  # A Struct, whose members are read and written by name.
  Record = Struct.new(:kind, :street, :progress, :own, :dice) do
    def move(weather)
      self.progress += kind == :pedestrian ? (-2.0 + 6.0 * roll / 2_147_483_648.0) * Traffic::MPH : [own, street.max_velocity].min * grip(weather)
      self.progress = 0.0 if progress < 0.0
      turn if progress >= street.length
    end

    def turn
      ways = kind == :pedestrian ? street.neighbors : street.roads
      self.street = ways[(roll >> 16) % ways.size] unless ways.empty?
      self.progress = ways.empty? ? street.length : 0.0
    end

    def roll = self.dice = (dice * 1_103_515_245 + 12_345) & 0x7fffffff

    def grip(weather)
      return 1.0 if weather == :sunny
      return 0.7 if kind == :bus

      weather == :rainy ? 0.8 : 0.5
    end
  end

  phrasing "one Struct, ternaries, modifiers" do
    include Made

    def actor(...) = Record.new(...)
  end
end
