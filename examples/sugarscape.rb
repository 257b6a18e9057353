# frozen_string_literal: true

# Sugarscape (Epstein and Axtell): agents of different sight and hunger look for sugar on two hills that grow it again.
#
#   ruby -Ilib examples/sugarscape.rb [places on a side]

require_relative "support/comparison"
require_relative "support/png"

module Sugarscape
  class Place
    include Comparable

    attr_reader :sugar, :capacity
    attr_accessor :rays, :agent

    def initialize(capacity)
      @capacity = @sugar = capacity
    end

    def grow
      @sugar = [@sugar + 1, @capacity].min
    end

    def harvest
      @sugar.tap { @sugar = 0 }
    end

    def free? = agent.nil?

    def <=>(other) = sugar <=> other.sugar
  end

  class Agent
    attr_reader :place, :wealth, :target

    def initialize(place, sight:, hunger:)
      @sight = sight
      @hunger = hunger
      @wealth = 10
      @place = place
      place.agent = self
    end

    # The best place in sight; among equally good ones the nearest.
    def look
      @target = @place
      @place.rays.each do |ray|
        ray.first(@sight).each { |place| @target = place if place.free? && place > @target }
      end
    end

    def go
      return unless @target.free?

      @place.agent = nil
      @place = @target
      @place.agent = self
    end

    def eat
      @wealth += @place.harvest - @hunger
    end

    def dead? = @wealth.negative?

    def leave = @place.agent = nil
  end

  class Land
    FARTHEST = 6

    attr_reader :places, :agents

    def initialize(size, random: Random.new(31))
      @places = Array.new(size * size) { |index| Place.new(capacity(*index.divmod(size), size)) }
      @places.each_with_index { |place, index| place.rays = rays(*index.divmod(size), size) }
      @agents = @places.sample(size * size / 5, random: random).map do |place|
        Agent.new(place, sight: random.rand(1..FARTHEST), hunger: random.rand(1..4))
      end
    end

    def tick
      @places.peach(&:grow)
      @agents.peach(&:look)
      @agents.each(&:go) # one after another: two may want the same
      @agents.peach(&:eat)
      dead, @agents = @agents.partition(&:dead?)
      dead.each(&:leave)
    end

    private

    # Two hills.
    def capacity(row, column, size)
      hills = [[0.25, 0.75], [0.75, 0.25]].map { |down, right| Math.hypot(row - down * size, column - right * size) / size }
      [4 - (hills.min * 12).floor, 0].max
    end

    def rays(row, column, size)
      [[-1, 0], [0, -1], [1, 0], [0, 1]].map do |down, right|
        (1..FARTHEST).map { |far| @places[(row + down * far) % size * size + (column + right * far) % size] }
      end
    end
  end

  # The wealth of the agent at each place, nil where there is none, and the sugar that is left.
  def self.run(size, ticks: 40)
    land = Land.new(size)
    ticks.times { land.tick }
    land.places.map { |place| [place.sugar, place.agent&.wealth] }.each_slice(size).to_a
  end

  def self.colour(sugar, wealth)
    return [30 + sugar * 25, 30 + sugar * 40, 32] unless wealth

    [255, [90 + wealth, 255].min, [wealth, 255].min]
  end
end

if $PROGRAM_NAME == __FILE__
  rows = Comparison.run(150) { |size| Sugarscape.run(size) }
  wealth = rows.flatten(1).filter_map(&:last).sort
  puts "#{wealth.size} agents live; the median has #{wealth[wealth.size / 2]} pieces of sugar, the richest #{wealth.last}."
  PNG.write("sugarscape.png", rows.flat_map { |row| [row.flat_map { |place| [Sugarscape.colour(*place)] * 4 }] * 4 })
end
