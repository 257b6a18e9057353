# frozen_string_literal: true

# The shortest distances between all pairs of places (Floyd and Warshall): a round for each place through which a way
# may lead. All rounds are one call.
class Program::FloydWarshall < Program
  ROADS = 5 # from each place
  sizes tiny: 7, small: 200, normal: 1_000, ruby: 100, scaling: [10, 32, 100, 316, 1_000]

  def input(size, random)
    distance = Array.new(size * size, Float::INFINITY)
    size.times do |place|
      ROADS.times { distance[place * size + random.rand(size)] = 1.0 + 9.0 * random.rand }
      distance[place * size + place] = 0.0
    end
    Columns.new.input(:size, :int64, size).output(:distance, :float64, distance)
  end

  def state(input) = [input[:size], input.fetch(:distance).values.dup]
  def changes? = true
  def outputs((_, distance), _result) = { distance: distance }
  def elements(size) = size * size
  def ratio(size, small) = (size / small.to_f)**3
  def work(input, _outputs) = { flops: 2 * input[:size]**3, bytes: 16 * input[:size]**2 }

  # The loops in C by hand are vectorised by gcc.
  def targets = { cpu: 0.4, cuda: 0.95 }
end
