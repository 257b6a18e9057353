# frozen_string_literal: true

# The Himeno benchmark: Jacobi's iteration for the pressure in a box. It is a stencil of 19 points with 12 coefficient
# arrays, with 8 iterations in one call, and bound by memory.
#
# It differs from the original in three points: it uses doubles, random pressures, and no sum of residuals.
class Program::Himeno < Program
  ITERATIONS = 8
  sizes tiny: 8, small: 32, normal: 64, ruby: 24, scaling: [5, 10, 22, 46, 100]
  COEFFICIENTS = { a0: 1.0, a1: 1.0, a2: 1.0, a3: 1.0 / 6.0, b0: 0.0, b1: 0.0, b2: 0.0, c0: 1.0, c1: 1.0, c2: 1.0, bound: 1.0, work: 0.0 }.freeze

  # A box of size × size × 2 size.
  def input(size, random)
    cells = size * size * 2 * size
    columns = Columns.new.input(:size, :int64, size).input(:iterations, :int64, ITERATIONS)
    COEFFICIENTS.each { |name, value| columns.input(name, :float64, Array.new(cells) { value + 0.01 * random.rand }) }
    pressure = Array.new(cells) { random.rand }
    columns.output(:p, :float64, pressure).output(:q, :float64, pressure)
  end

  def state(input)
    [input[:size], input[:iterations], *(COEFFICIENTS.keys + %i[p q]).map { |name| input.fetch(name).values.dup }]
  end

  def changes? = true
  def outputs(state, _result) = { p: state[-2], q: state[-1] }
  def elements(size) = 2 * size**3
  def ratio(size, small) = (size / small.to_f)**3

  def work(input, _outputs)
    inner = (input[:size] - 2)**2 * (2 * input[:size] - 2)
    { flops: 34 * inner * input[:iterations], bytes: 14 * 8 * inner * input[:iterations] }
  end

  # The loops in C by hand are vectorised by gcc.
  def targets = { cpu: 0.4, cuda: 0.95 }
end
