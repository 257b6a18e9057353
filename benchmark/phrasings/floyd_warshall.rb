# frozen_string_literal: true

class Program::FloydWarshall
  phrasing "flat Arrays, a call for each round, a guard against no way, early next" do
    def compute((size, distance))
      size.times do |between|
        (0...size * size).peach do |pair|
          first = distance[pair / size * size + between]
          next if first == Float::INFINITY

          second = distance[between * size + pair % size]
          next if second == Float::INFINITY

          distance[pair] = first + second if distance[pair] > first + second
        end
      end
    end
  end

  phrasing "flat Arrays, min of an Array, no branch" do
    def compute((size, distance))
      (0...size * size).peach(size) do |pair|
        from = pair / size
        to = pair % size
        distance[pair] = [distance[pair], distance[from * size + Ikra.tick] + distance[Ikra.tick * size + to]].min
      end
    end
  end

  phrasing "flat Arrays, a job for each row, while, running indices" do
    def compute((size, distance))
      (0...size).peach(size) do |from|
        start = distance[from * size + Ikra.tick]
        here = from * size
        other = Ikra.tick * size
        last = here + size
        while here < last
          through = start + distance[other]
          distance[here] = through if through < distance[here]
          here += 1
          other += 1
        end
      end
    end
  end

  phrasing "flat Arrays, a job for each row, step, a guard by finite?" do
    def compute((size, distance))
      size.times do |between|
        0.step(size * size - 1, size).peach do |row|
          start = distance[row + between]
          next unless start.finite?

          size.times do |to|
            through = start + distance[between * size + to]
            distance[row + to] = through < distance[row + to] ? through : distance[row + to]
          end
        end
      end
    end
  end

  # A row of distances for each place.
  module Nested
    def state(input) = [input[:size], input.fetch(:distance).values.each_slice(input[:size]).to_a]
    def outputs((_, rows), _result) = { distance: rows.flatten(1) }
  end

  phrasing "nested Arrays, each_index in a row" do
    include Nested

    def compute((size, rows))
      rows.peach(size) do |row|
        between = rows[Ikra.tick]
        start = row[Ikra.tick]
        row.each_index do |to|
          through = start + between[to]
          row[to] = through if through < row[to]
        end
      end
    end
  end

  phrasing "nested Arrays, a job for each pair, divmod" do
    include Nested

    def compute((size, rows))
      size.times do |between|
        (0...size * size).peach do |pair|
          from, to = pair.divmod(size)
          rows[from][to] = rows[from][between] + rows[between][to] if rows[from][between] + rows[between][to] < rows[from][to]
        end
      end
    end
  end

  phrasing "nested Arrays, new rows in each round, zip and map" do
    include Nested

    def changes? = false
    def outputs(_state, rows) = { distance: rows.flatten(1) }

    def compute((size, rows))
      size.times do |between|
        on = rows[between]
        rows = rows.pmap do |row|
          start = row[between]
          row.zip(on).map { |straight, rest| start + rest < straight ? start + rest : straight }
        end
      end
      rows
    end
  end

  phrasing "nested Arrays, a new matrix in each round, Array.pnew" do
    include Nested

    def changes? = false
    def outputs(_state, rows) = { distance: rows.flatten(1) }

    def compute((size, rows))
      size.times do |between|
        before = rows
        rows = Array.pnew(size, size) do |from, to|
          straight = before[from][to]
          through = before[from][between] + before[between][to]
          through < straight ? through : straight
        end
      end
      rows
    end
  end

  # A place that knows how far all others are, with methods cut small.
  class Place
    attr_reader :number, :distances

    def initialize(number, distances)
      @number = number
      @distances = distances
    end

    def to(place) = distances[place.number]
    def by(between, last) = to(between) + between.to(last)
    def shorter_by?(between, last) = by(between, last) < to(last)
    def go_by(between, places) = places.each { |last| distances[last.number] = by(between, last) if shorter_by?(between, last) }
  end

  phrasing "objects with a row each, methods cut small" do
    def state(input) = [input.fetch(:distance).values.each_slice(input[:size]).with_index.map { |row, number| Place.new(number, row) }]
    def outputs((places), _result) = { distance: places.flat_map { |place| place.distances } }
    def compute((places)) = places.peach(places.size) { |place| place.go_by(places[Ikra.tick], places) }
  end

  # Two places, and the shortest way known from the one to the other.
  Way = Struct.new(:from, :to, :length) do
    def improve(first, second)
      through = first.length + second.length
      self.length = through if through < length
    end
  end

  phrasing "a Struct for each pair, rows of them" do
    def state(input)
      size = input[:size]
      ways = input.fetch(:distance).values.each_with_index.map { |length, pair| Way.new(*pair.divmod(size), length) }
      [ways, ways.each_slice(size).to_a]
    end

    def outputs((ways), _result) = { distance: ways.map(&:length) }

    def compute((ways, rows))
      ways.peach(rows.size) { |way| way.improve(rows[way.from][Ikra.tick], rows[Ikra.tick][way.to]) }
    end
  end

  # MDArrays in place of Arrays.
  module MDArrays
    def state(input) = [input[:size], Ikra::MDArray.new(input.fetch(:distance).values.each_slice(input[:size]).to_a)]
    def outputs((_, distance), _result) = { distance: distance.to_flat_a }
  end

  phrasing "MDArrays, elements by index" do
    include MDArrays

    def compute((size, distance))
      (0...size * size).peach(size) do |pair|
        from, to = pair.divmod(size)
        through = distance[from, Ikra.tick] + distance[Ikra.tick, to]
        distance[from, to] = through if through < distance[from, to]
      end
    end
  end

  phrasing "MDArrays, a row and a column broadcast, minimum" do
    include MDArrays

    def changes? = false
    def outputs(_state, distance) = { distance: distance.to_flat_a }

    def compute((size, distance))
      size.times { |between| distance = distance.minimum(distance[true, between..between] + distance[between..between, true]) }
      distance.sync
    end
  end
end
