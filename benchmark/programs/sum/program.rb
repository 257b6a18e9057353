# frozen_string_literal: true

# The sum of many Floats, each version in the order of additions that suits it.
class Program::Sum < Program
  sizes tiny: 100, small: 1_000_000, normal: 16_000_000, scaling: [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]

  def input(size, random)
    Columns.new.input(:x, :float64, Array.new(size) { random.rand }).output(:total, :float64, [0.0])
  end

  def state(input) = input[:x]
  def outputs(_state, result) = { total: [result] }
  def work(input, _outputs) = { flops: input[:x].size, bytes: 8 * input[:x].size }
  def tolerance = [1e-10, "the order of additions differs"]
end
