# frozen_string_literal: true

# The product of two square matrices, arrays of rows.
class Program::Matmul < Program
  sizes tiny: 6, small: 200, normal: 768, ruby: 120, scaling: [10, 32, 100, 316, 1_000]

  def input(size, random)
    Columns.new.input(:size, :int64, size).input(:a, :float64, Array.new(size * size) { random.rand - 0.5 })
           .input(:b, :float64, Array.new(size * size) { random.rand - 0.5 }).output(:c, :float64, [0.0] * (size * size))
  end

  def state(input) = [input[:size], *%i[a b].map { |name| input.fetch(name).values.each_slice(input[:size]).to_a }]
  def outputs(_state, result) = { c: result.flatten(1) }
  def elements(size) = size * size
  def ratio(size, small) = (size / small.to_f)**3
  def work(input, _outputs) = { flops: 2 * input[:size]**3, bytes: 3 * 8 * input[:size]**2 }

  # The loops in C by hand are vectorised by gcc.
  def targets = { cpu: 0.4, cuda: 0.95 }
end
