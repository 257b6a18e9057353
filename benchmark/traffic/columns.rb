# frozen_string_literal: true

require_relative "../../examples/traffic/model"

# Steady actors as the columns that benchmark/baseline/traffic.h describes: cars, buses, pedestrians, each type in the array's order.
class TrafficColumns
  MAGIC = 0x4646415254
  TYPES = [Traffic::SteadyCar, Traffic::SteadyBus, Traffic::SteadyPedestrian].freeze

  # What Ruby's +move+ makes of a weather, for a program that has no classes.
  GRIPS = { Traffic::Weather::Sunny => [1.0, 1.0], Traffic::Weather::Rainy => [0.8, 0.7], Traffic::Weather::Snowy => [0.5, 0.7] }.freeze

  attr_reader :actors

  def initialize(network, actors)
    @network = network
    @numbers = network.streets.each_with_index.to_h.compare_by_identity
    @sorted = actors.group_by(&:class).values_at(*TYPES).map(&:to_a)
    @actors = @sorted.flatten(1)
  end

  def write_input(path, ticks:, weather:)
    neighbors, neighbor_offsets = collapsed(&:neighbors)
    roads, road_offsets = collapsed(&:roads)
    counts = [MAGIC, @network.streets.size, neighbors.size, roads.size, *@sorted.map(&:size), ticks]
    File.open(path, "wb") do |file|
      file.write(counts.pack("q*"), GRIPS.fetch(weather).pack("d*"))
      file.write(@network.streets.map(&:length).pack("d*"), @network.streets.map(&:max_velocity).pack("d*"))
      [neighbor_offsets, neighbors, road_offsets, roads].each { |column| file.write(column.pack("l*")) }
      file.write(@actors.map(&:progress).pack("d*"), @actors.map { |actor| actor.is_a?(Traffic::Vehicle) ? actor.max_velocity : 0.0 }.pack("d*"))
      file.write(streets.pack("l*"), @actors.map(&:dice).pack("l*"))
    end
  end

  # The state now, byte for byte what a baseline writes when it ends there.
  def state
    @actors.map(&:progress).pack("d*") + streets.pack("l*") + @actors.map(&:dice).pack("l*")
  end

  # A state as [progress, street, dice] for the actors at +indices+ of the sorted order.
  def self.pick(state, indices)
    count = state.bytesize / 16
    progress = state.byteslice(0, 8 * count).unpack("d*")
    street, dice = state.byteslice(8 * count, 8 * count).unpack("l*").each_slice(count).to_a
    indices.map { |index| [progress[index], street[index], dice[index]] }
  end

  # Bytes of the columns that the simulation touches, with ids of 4 bytes and Integers of 8.
  def self.bytes(network, actors)
    vehicles = actors.count { |actor| actor.is_a?(Traffic::Vehicle) }
    ways = network.streets.sum { |street| street.neighbors.size + street.roads.size }
    actors.size * (8 + 4) + (actors.first.is_a?(Traffic::OwnDice) ? actors.size * 8 : 0) + vehicles * 8 +
      network.streets.size * (8 + 8 + 2 * (4 + 4)) + ways * 4
  end

  private

  def streets
    @actors.map { |actor| @numbers[actor.street] }
  end

  def collapsed
    lists = @network.streets.map { |street| yield(street).map { |way| @numbers[way] } }
    offsets = [0]
    lists.each { |list| offsets << offsets.last + list.size }
    [lists.flatten(1), offsets]
  end
end
