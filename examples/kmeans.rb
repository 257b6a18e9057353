# frozen_string_literal: true

# Clusters points around k centres (Lloyd's algorithm).
#
#   ruby -Ilib examples/kmeans.rb [points]

require_relative "support/comparison"

module KMeans
  class Point
    attr_reader :x, :y
    attr_accessor :cluster

    def initialize(x, y)
      @x = x
      @y = y
    end

    def distance_to(other) = Math.hypot(x - other.x, y - other.y)

    # Joins the cluster whose centre is nearest; true if it was in another.
    def join(clusters)
      before = cluster
      self.cluster = clusters.min_by { |candidate| distance_to(candidate.centre) }
      !cluster.equal?(before)
    end
  end

  class Cluster
    attr_reader :centre

    def initialize(centre)
      @centre = centre
    end

    def settle(points)
      mine = points.select { |point| point.cluster.equal?(self) }
      return if mine.empty?

      @centre = Point.new(mine.sum(&:x) / mine.size, mine.sum(&:y) / mine.size)
    end
  end

  def self.points(count, random)
    homes = Array.new(12) { [random.rand * 100, random.rand * 100] }
    Array.new(count) do
      x, y = homes.sample(random: random)
      angle = random.rand * 2 * Math::PI
      distance = random.rand**2 * 18
      Point.new(x + distance * Math.cos(angle), y + distance * Math.sin(angle))
    end
  end

  # Each point's place and the number of its cluster.
  def self.run(count, k: 12, rounds: 30)
    random = Random.new(5)
    points = points(count, random)
    clusters = points.sample(k, random: random).map { |point| Cluster.new(point) }
    rounds.times do
      moved = points.pmap { |point| point.join(clusters) }
      break if moved.none?

      clusters.peach { |cluster| cluster.settle(points) }
    end
    points.map { |point| [point.x, point.y, clusters.index(point.cluster)] }
  end

  def self.picture(places)
    dots = places.first(20_000).map do |x, y, cluster|
      format('<circle cx="%.1f" cy="%.1f" r="2" fill="hsl(%d, 80%%, 60%%)"/>', 100 + x * 6, 100 + y * 6, cluster * 137 % 360)
    end
    %(<svg xmlns="http://www.w3.org/2000/svg" width="800" height="800"><rect width="800" height="800" fill="#0d1220"/>\n#{dots.join("\n")}</svg>\n)
  end
end

if $PROGRAM_NAME == __FILE__
  places = Comparison.run(20_000) { |count| KMeans.run(count) }
  puts "Points per cluster: #{places.map(&:last).tally.sort.map(&:last).join(", ")}"
  File.write("kmeans.svg", KMeans.picture(places))
  puts "Picture: kmeans.svg"
end
