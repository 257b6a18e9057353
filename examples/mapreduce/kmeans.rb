# frozen_string_literal: true

# Clusters points around k centres (Lloyd's algorithm), a pass for each round.
#
#   ruby -Ilib examples/mapreduce/kmeans.rb [points]

require_relative "../support/comparison"

module KMeansInPasses
  Point = Struct.new(:x, :y) do
    def +(other) = Point.new(x + other.x, y + other.y)
    def /(number) = Point.new(x / number, y / number)
    def distance(other) = (x - other.x)**2 + (y - other.y)**2
  end

  # A round: the mean of the points that are nearest to each centre.
  class Round < Ikra::MapReduce
    def initialize(centres) = @centres = centres

    def map(point) = emit(@centres.each_index.min_by { |i| point.distance(@centres[i]) }, point)

    def reduce(_centre, points) = points.sum(Point.new(0.0, 0.0)) / points.size
  end

  def self.points(count, random)
    homes = Array.new(8) { Point.new(random.rand * 100, random.rand * 100) }
    Array.new(count) { homes.sample(random: random) + Point.new(random.rand * 20, random.rand * 20) }
  end

  # The centres, when they move no more.
  def self.run(count, k: 8, rounds: 40)
    random = Random.new(5)
    points = points(count, random)
    centres = points.sample(k, random: random)
    rounds.times do
      before = centres
      means = Round.new(centres).run(points)
      centres = before.each_with_index.map { |centre, i| means.fetch(i, centre) }
      break if centres == before
    end
    centres.map(&:to_a)
  end
end

if $PROGRAM_NAME == __FILE__
  centres = Comparison.run(10_000) { |count| KMeansInPasses.run(count) }
  centres.each { |x, y| puts format("%5.1f, %5.1f", x, y) }
end
