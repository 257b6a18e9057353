# frozen_string_literal: true

require_relative "actor"

module Traffic
  # Streets, and the intersections that join them.
  class Network
    # Kinds of streets (OpenStreetMap's) where only walkers, riders and cyclists go.
    FOOTPATHS = %w[footway path track bridleway cycleway pedestrian steps].freeze

    # Kilometres per hour, where the map gives no limit.
    USUAL_LIMIT = { "service" => 20, "living_street" => 20, "residential" => 30, "unclassified" => 50 }.freeze

    attr_reader :streets, :intersections

    # Reads streets.csv and intersections.csv.
    def self.load(directory)
      intersections = rows(directory, "intersections.csv").map { |_id, longitude, latitude| [longitude.to_f, latitude.to_f] }
      streets = rows(directory, "streets.csv").map do |_id, from, to, length, limit, kind, name|
        limit = limit.empty? ? USUAL_LIMIT.fetch(kind, 50) : limit.to_i
        Street.new(from: from.to_i, to: to.to_i, length: length.to_f, max_velocity: limit * KMH, kind: kind, name: name)
      end
      new(streets, intersections)
    end

    # A town on squared paper with about +count+ streets, for where the real one is too small. One street in eight is a
    # footpath.
    def self.grid(count, seed: 1)
      random = Random.new(seed)
      side = [Math.sqrt(count / 4.0).ceil, 2].max
      streets = (side * side).times.flat_map do |corner|
        row, column = corner.divmod(side)
        corners = [[row, column + 1], [row + 1, column], [row, column - 1], [row - 1, column]]
        corners.select { |place| place.all? { |n| n.between?(0, side - 1) } }.map do |to_row, to_column|
          Street.new(from: corner, to: to_row * side + to_column, length: random.rand(20.0..230.0),
                     max_velocity: [20, 30, 50, 70].sample(random: random) * KMH, kind: random.rand(8).zero? ? "path" : "residential")
        end
      end
      new(streets, (side * side).times.map { |corner| corner.divmod(side).map(&:to_f) })
    end

    def initialize(streets, intersections)
      @streets = streets
      @intersections = intersections
      connect
    end

    def roads
      @roads ||= streets.reject { |street| FOOTPATHS.include?(street.kind) }
    end

    def self.rows(directory, file)
      File.foreach(File.join(directory, file), chomp: true).drop(1).map { |line| line.split(",", -1) }
    end
    private_class_method :rows

    private

    def connect
      streets_from = streets.group_by(&:from)
      roads_from = roads.group_by(&:from)
      streets.each do |street|
        street.neighbors = onward(street, streets_from.fetch(street.to, []))
        street.roads = onward(street, roads_from.fetch(street.to, []))
      end
    end

    def onward(street, ways)
      on = ways.reject { |way| way.to == street.from }
      on.empty? ? ways : on
    end
  end
end
