# frozen_string_literal: true

# A fluid that flows around obstacles, by the lattice Boltzmann method in two dimensions with nine directions (D2Q9).
#
# In a step, each cell takes what streams in from its neighbours, and lets it collide. An obstacle throws it back. The
# edges are joined. 10 steps are one call, and it is bound by memory.
class Program::LatticeBoltzmann < Program
  STEPS = 10
  # Directions: their steps to the right and down, their weights, and the opposite of each.
  RIGHT = [0, 1, 0, -1, 0, 1, -1, -1, 1].freeze
  DOWN = [0, 0, 1, 0, -1, 1, 1, -1, -1].freeze
  WEIGHTS = [4.0 / 9.0, *[1.0 / 9.0] * 4, *[1.0 / 36.0] * 4].freeze
  OPPOSITE = [0, 3, 4, 1, 2, 7, 8, 5, 6].freeze
  sizes tiny: 6, small: 128, normal: 512, ruby: 64, scaling: [10, 32, 100, 316, 1_000]

  # Nine numbers for each of size × size cells, those of a direction beside each other.
  def input(size, random)
    cells = size * size
    flows = Array.new(9 * cells) { |index| WEIGHTS[index / cells] * (0.9 + 0.2 * random.rand) }
    Columns.new.input(:size, :int64, size).input(:steps, :int64, STEPS).input(:relaxation, :float64, 1.2 + 0.4 * random.rand)
           .input(:solid, :byte, Array.new(cells) { random.rand < 0.1 ? 1 : 0 }).output(:flows, :float64, flows).output(:others, :float64, [0.0] * flows.size)
  end

  def state(input)
    [Fluid.new(input[:size], input[:relaxation], input.fetch(:solid).values.map { |byte| byte == 1 }), input[:steps], *%i[flows others].map { |name| input.fetch(name).values.dup }]
  end

  def changes? = true
  def outputs((*, flows, others), _result) = { flows: flows, others: others }
  def elements(size) = size * size
  def ratio(size, small) = (size / small.to_f)**2
  def work(input, outputs) = { flops: 16 * input[:steps] * outputs[:flows].size, bytes: 16 * input[:steps] * outputs[:flows].size }
end
