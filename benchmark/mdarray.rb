# frozen_string_literal: true

# Operations on whole arrays, which stay where they are computed: an element-wise chain in 64 and in 32 bits, a sum, a
# product of matrices, and a stencil. Also the Mandelbrot set of the paper of 2011 (figure 1), in 64 and in 32 bits.
# They are compared with C++ with OpenMP, NumPy and Numba on the CPU, and with CUDA by hand, CuPy, JAX and Numba on the
# GPU. operations/beside.rb says how. More operations are in operations.rb.
#
# On a GPU, the kernels of the chains, and the sum from Ruby to Ruby, are also compared with a copy. It is the driver's
# copy of as many bytes from the device to itself, in the same run.
#
#   ruby -Ilib benchmark/mdarray.rb     # RUNS=, IKRA_BENCH_BACKENDS=cpu,cuda in the environment;
#                                       # ELEMENTS=, SIDE= of matrices, POINTS= along each side of the set

require "ikra"
require_relative "operations/beside"
require_relative "suite/device"

class MDArrayBenchmark
  PEERS = { cpu: %w[c numpy numba], cuda: ["by hand", *%w[cupy jax numba-cuda]] }.freeze
  # How fast kernels must be, compared with those written by hand.
  WANTED = ["a*x + b*x*x", "a*x + b*x*x, f32", "matmul", "stencil", "mandelbrot", "mandelbrot, f32"].to_h { |name| [["by hand", name], 0.95] }.freeze
  # The fraction of a copy's bytes per second that must be reached.
  BANDWIDTH = 0.9

  def initialize
    @bench = Harness.new("mdarray")
    @elements = @bench.size(:elements, 64 << 20, tiny: 1_000)
    @side = @bench.size(:side, 1_024, tiny: 16)
    @points = @bench.size(:points, 2_000, tiny: 30)
    @beside = Beside.new(@bench, @bench.size(:runs, 7, tiny: 1), peers: PEERS, wanted: WANTED)
    Ikra.srand(@bench.seed)
  end

  def run
    @bench.backends.each do |backend|
      Ikra.config.backend = backend
      timings = cases.to_h { |work| [work.name, @beside.measure(backend, work, @elements)] }
      bandwidth(timings) if backend == :cuda
    end
    @bench.finish
  end

  private

  # An operation that reads and writes as many bytes as a copy takes as long at best. One that only reads them takes
  # half of that.
  def bandwidth(timings)
    device = Device.new
    { "a*x + b*x*x" => [8, 1.0], "a*x + b*x*x, f32" => [4, 1.0], "sum" => [8, 0.5] }.each do |name, (width, part)|
      copy = copy_seconds(device, @elements * width)
      @bench.value("device to device, #{width} bytes an element", 2 * width * @elements / copy / 1e9, "GB/s")
      ours = @beside.kernels["cuda: #{name}"] || timings.fetch(name)
      @bench.target("cuda: #{name}, against the bandwidth of a copy", part * copy / ours.median, at_least: BANDWIDTH)
    end
  end

  def copy_seconds(device, bytes)
    @places ||= Array.new(2) { device.allocate(@elements * 8).tap { |place| device.clear(place, @elements * 8) } }
    from, to = device.event, device.event
    Array.new(@bench.tiny? ? 1 : 10) do
      device.record(from)
      device.copy(*@places, bytes)
      device.record(to)
      device.wait
      device.seconds(from, to)
    end.min
  end

  def cases
    square = Math.sqrt(@elements).to_i
    [
      Beside::Case.new(name: "a*x + b*x*x", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x * 2.5 + x * 0.5 * x }, ruby: ->(x) { x.map { |e| e * 2.5 + e * 0.5 * e } }),
      Beside::Case.new(name: "a*x + b*x*x, f32", inputs: ->(n) { [random(n).to(:f32)] }, ikra: ->(x) { x * 2.5 + x * 0.5 * x },
               ruby: ->(x) { x.map { |e| single(single(e * 2.5) + single(single(e * 0.5) * e)) } }),
      Beside::Case.new(name: "sum", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x.sum }, ruby: ->(x) { x.sum }, loose: true),
      Beside::Case.new(name: "matmul", inputs: ->(n) { side = n < 1_000 ? 12 : @side; [random(side, side), random(side, side)] }, ikra: ->(a, b) { a.matmul(b) },
               ruby: ->(a, b) { columns = b.transpose; a.map { |row| columns.map { |column| row.zip(column).sum { |x, y| x * y } } } }, loose: true),
      Beside::Case.new(name: "stencil", inputs: ->(n) { side = n < 1_000 ? 20 : square; [random(side, side)] }, ikra: method(:blurred), ruby: method(:blurred_in_ruby)),
      Beside::Case.new(name: "mandelbrot", inputs: method(:side_of), ikra: ->(side) { mandelbrot(side[0]) }, ruby: ->(side) { mandelbrot_in_ruby(side[0]) { |x| x } }, apart: 1e-4),
      Beside::Case.new(name: "mandelbrot, f32", inputs: method(:side_of), ikra: ->(side) { mandelbrot(side[0], precision: :f32) },
               ruby: ->(side) { mandelbrot_in_ruby(side[0]) { |x| single(x) } }, apart: 1e-4)
    ]
  end

  def side_of(elements) = [Ikra::MDArray[elements < 1_000 ? 24 : @points]]

  # Figure 1 of the paper of 2011.
  def mandelbrot(size, limit: 256, **options)
    inf = 2.0
    r_start, i_start = -2.0, -1.25
    step = 2.5 / size
    Ikra::MDArray.new(size, size, **options) do |i, j|
      cr = r_start + i * step
      ci = i_start + j * step
      zr = 0.0
      zi = 0.0
      iter = 0
      while iter < limit && ((zr * zr + zi * zi)**0.5) < inf
        t = zr * zr - zi * zi + cr
        zi = 2.0 * zr * zi + ci
        zr = t
        iter += 1
      end
      iter
    end
  end

  # The same with plain Ruby. +yield+ converts each intermediate number.
  def mandelbrot_in_ruby(size)
    step = yield(2.5 / size)
    Array.new(size) do |i|
      Array.new(size) do |j|
        cr, ci = yield(-2.0 + yield(i * step)), yield(-1.25 + yield(j * step))
        zr = zi = 0.0
        (0..).find do |iter|
          squares = [yield(zr * zr), yield(zi * zi)]
          next true unless iter < 256 && yield(yield(squares.sum)**0.5) < 2.0

          zr, zi = yield(yield(squares[0] - squares[1]) + cr), yield(yield(yield(2.0 * zr) * zi) + ci)
          false
        end
      end
    end
  end

  def random(*sizes) = Ikra::MDArray.rand(*sizes)

  def single(value) = [value].pack("e").unpack1("e")

  # The average of each element and its four neighbours, zero along the edge.
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
