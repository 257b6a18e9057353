# frozen_string_literal: true

# Operations on whole arrays that lie where they are computed: an element-wise chain in 64 and in 32 bits, a sum, a product of matrices, and a stencil; beside
# the same in NumPy and Numba on the CPU, and CuPy, JAX and Numba on the GPU (operations/beside.rb says how). Others are in operations.rb.
#
#   ruby -Ilib benchmark/mdarray.rb     # ELEMENTS=, SIDE= of matrices, RUNS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "operations/beside"

class MDArrayBenchmark
  PEERS = { cpu: %w[numpy numba], cuda: %w[cupy jax numba-cuda] }.freeze

  def initialize
    @bench = Harness.new("mdarray")
    @elements = @bench.size(:elements, 16_000_000, tiny: 1_000)
    @side = @bench.size(:side, 1_024, tiny: 16)
    @beside = Beside.new(@bench, @bench.size(:runs, 7, tiny: 1), peers: PEERS)
    Ikra.srand(@bench.seed)
  end

  def run
    @bench.backends.each do |backend|
      Ikra.config.backend = backend
      cases.each { |work| @beside.measure(backend, work, @elements) }
    end
    @bench.finish
  end

  private

  def cases
    square = Math.sqrt(@elements).to_i
    [
      Beside::Case.new(name: "a*x + b*x*x", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x * 2.5 + x * 0.5 * x }, ruby: ->(x) { x.map { |e| e * 2.5 + e * 0.5 * e } }),
      Beside::Case.new(name: "a*x + b*x*x, f32", inputs: ->(n) { [random(n).to(:f32)] }, ikra: ->(x) { x * 2.5 + x * 0.5 * x },
               ruby: ->(x) { x.map { |e| single(single(e * 2.5) + single(single(e * 0.5) * e)) } }),
      Beside::Case.new(name: "sum", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x.sum }, ruby: ->(x) { x.sum }, loose: true),
      Beside::Case.new(name: "matmul", inputs: ->(n) { side = n < 1_000 ? 12 : @side; [random(side, side), random(side, side)] }, ikra: ->(a, b) { a.matmul(b) },
               ruby: ->(a, b) { columns = b.transpose; a.map { |row| columns.map { |column| row.zip(column).sum { |x, y| x * y } } } }, loose: true),
      Beside::Case.new(name: "stencil", inputs: ->(n) { side = n < 1_000 ? 20 : square; [random(side, side)] }, ikra: method(:blurred), ruby: method(:blurred_in_ruby))
    ]
  end

  def random(*sizes) = Ikra::MDArray.rand(*sizes)

  def single(value) = [value].pack("e").unpack1("e")

  # Each element with its four neighbours, zero along the edge.
  def blurred(grid)
    grid.stencil([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]], 0.0) { |here, up, down, left, right| here * 0.5 + (up + down + left + right) * 0.125 }
  end

  def blurred_in_ruby(rows)
    rows.each_index.map do |i|
      rows[i].each_index.map do |j|
        next 0.0 unless i.between?(1, rows.size - 2) && j.between?(1, rows[i].size - 2)

        rows[i][j] * 0.5 + (rows[i - 1][j] + rows[i + 1][j] + rows[i][j - 1] + rows[i][j + 1]) * 0.125
      end
    end
  end
end

MDArrayBenchmark.new.run if $PROGRAM_NAME == __FILE__
