# frozen_string_literal: true

# One multiplication and one addition for each of many Floats: bound by memory, and in Ruby by its objects.
class Program::Map < Program
  sizes tiny: 100, small: 1_000_000, normal: 8_000_000, scaling: [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]

  def input(size, random)
    Columns.new.input(:x, :float64, Array.new(size) { random.rand }).output(:y, :float64, [0.0] * size)
  end

  def state(input) = input[:x]
  def outputs(_state, result) = { y: result }
  def work(input, _outputs) = { flops: 2 * input[:x].size, bytes: 16 * input[:x].size }
end
