# frozen_string_literal: true

# The number of steps, at most 256, that the points of a square of the plane take to escape. It is bound by arithmetic,
# and threads diverge.
class Program::Mandelbrot < Program
  MAX_STEPS = 256
  sizes tiny: 12, small: 500, normal: 2_000, ruby: 300, scaling: [10, 32, 100, 316, 1_000, 3_162]

  # The plane's corner is random, so that no two runs compute the same points.
  def input(size, random)
    Columns.new.input(:width, :int64, size).input(:left, :float64, -2.0 - 0.1 * random.rand).input(:top, :float64, -1.25 - 0.05 * random.rand)
           .input(:step, :float64, 2.6 / size).output(:steps, :int64, [0] * (size * size))
  end

  def state(input) = [input[:width], input[:left], input[:top], input[:step]]
  def outputs(_state, result) = { steps: result }
  def elements(size) = size * size
  def ratio(size, small) = (size / small.to_f)**2
  def work(_input, outputs) = { flops: 7 * outputs[:steps].sum + 4 * outputs[:steps].size, bytes: 8 * outputs[:steps].size }

  # Where multiplications and additions are contracted, points at the edge escape a step sooner or later.
  def difference(expected, actual, loose: false)
    return super unless loose && actual[:steps].size == expected[:steps].size

    others = expected[:steps].zip(actual[:steps]).count { |one, other| one != other }
    "#{others} of #{expected[:steps].size} points differ" if others > 0.01 * expected[:steps].size
  end

  def loose_tolerance = [nil, "compilers of the libraries contract multiplications and additions: up to 1 % of the points may differ"]

  def targets = { cpu: 0.9, cuda: 0.95, per_core: 17 }
end
