# frozen_string_literal: true

require_relative "../../../examples/traffic/model"

# The traffic simulation of the paper: cars, buses and pedestrians on a town's streets, with ten actors for a street and
# a thousand ticks in one call. Each actor has random numbers of its own, so that every version ends in the same state
# to the bit.
class Traffic::Benchmark < Program
  TICKS = 1_000
  sizes tiny: 200, small: 50_000, normal: 1_000_000, ruby: 2_000, scaling: [100, 1_000, 10_000, 100_000, 1_000_000]
  TYPES = [Traffic::SteadyCar, Traffic::SteadyBus, Traffic::SteadyPedestrian].freeze

  # The factors that Ruby's +move+ takes from a weather, for programs without classes.
  GRIPS = { Traffic::Weather::Sunny => [1.0, 1.0], Traffic::Weather::Rainy => [0.8, 0.7], Traffic::Weather::Snowy => [0.5, 0.7] }.freeze
  WEATHERS = GRIPS.keys.freeze

  def model = %w[actor own_dice street weather].map { |name| File.expand_path("../../../examples/traffic/#{name}.rb", __dir__) }

  # Actors are cars, then buses, then pedestrians. :order has the position of each in the Ruby array.
  def input(size, random)
    network = Traffic::Network.grid([size / 10, 16].max, seed: random.rand(1 << 30))
    actors = Traffic::Population.new(network, seed: random.rand(1 << 30), deterministic: true).actors(size)
    sorted = actors.each_index.sort_by { |index| [TYPES.index(actors[index].class), index] }
    weather = random.rand(WEATHERS.size)
    columns = Columns.new.input(:ticks, :int64, TICKS).input(:weather, :int64, weather)
    columns.input(:car_grip, :float64, GRIPS.values[weather].first).input(:bus_grip, :float64, GRIPS.values[weather].last)
    TYPES.zip(%i[cars buses pedestrians]) { |type, name| columns.input(name, :int64, actors.count { |actor| actor.instance_of?(type) }) }
    streets(columns, network)
    positions = Array.new(size)
    sorted.each_with_index { |index, position| positions[index] = position }
    columns.input(:order, :int64, positions)
    people(columns, sorted.map { |index| actors[index] }, network)
  end

  def state(input)
    streets = streets_of(input)
    progress, own, street, dice = %i[progress own street dice].map { |name| input.fetch(name).values }
    cars, vehicles = input[:cars], input[:cars] + input[:buses]
    actors = progress.each_index.map do |index|
      place = [streets[street[index]], progress[index]]
      if index < vehicles then (index < cars ? Traffic::SteadyCar : Traffic::SteadyBus).new(*place, own[index], dice[index])
      else Traffic::SteadyPedestrian.new(*place, dice[index])
      end
    end
    [input.fetch(:order).values.map { |index| actors[index] }, WEATHERS[input[:weather]], input[:ticks], actors, streets]
  end

  def changes? = true

  def outputs((_, _, _, actors, streets), _result)
    numbers = streets.each_with_index.to_h.compare_by_identity
    { progress: actors.map(&:progress), street: actors.map { |actor| numbers[actor.street] }, dice: actors.map(&:dice) }
  end

  def work(input, outputs)
    { flops: 4 * input[:ticks] * outputs[:progress].size, bytes: input.bytes + input.bytes(only_outputs: true) }
  end

  # The times are promised for an H200 with 16 cores.
  def targets = { cpu: 0.9, cuda: 0.95, per_core: 25, ms: { cuda: { kernel: 2.4, beside: 100 } } }

  private

  def streets(columns, network)
    numbers = network.streets.each_with_index.to_h.compare_by_identity
    columns.input(:length, :float64, network.streets.map(&:length)).input(:limit, :float64, network.streets.map(&:max_velocity))
    %i[neighbors roads].each do |name|
      lists = network.streets.map { |street| street.public_send(name).map { |way| numbers[way] } }
      columns.input(:"#{name}_offset", :int32, lists.each_with_object([0]) { |list, offsets| offsets << offsets.last + list.size })
      columns.input(name, :int32, lists.flatten(1))
    end
  end

  def people(columns, actors, network)
    numbers = network.streets.each_with_index.to_h.compare_by_identity
    columns.input(:own, :float64, actors.map { |actor| actor.is_a?(Traffic::Vehicle) ? actor.max_velocity : 0.0 })
    columns.output(:progress, :float64, actors.map(&:progress)).output(:street, :int32, actors.map { |actor| numbers[actor.street] })
    columns.output(:dice, :int32, actors.map(&:dice))
  end

  def streets_of(input)
    streets = input.fetch(:length).values.zip(input.fetch(:limit).values).map { |length, limit| Traffic::Street.new(from: 0, to: 0, length: length, max_velocity: limit) }
    %i[neighbors roads].each do |name|
      offsets, ways = input.fetch(:"#{name}_offset").values, input.fetch(name).values
      streets.each_with_index { |street, index| street.public_send(:"#{name}=", streets.values_at(*ways[offsets[index]...offsets[index + 1]])) }
    end
    streets
  end
end
