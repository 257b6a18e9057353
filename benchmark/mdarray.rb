# frozen_string_literal: true

# Operations on whole arrays that lie where they are computed: an element-wise chain in 64 and in 32 bits, a sum, a product of matrices, a
# stencil, and sorting; beside the same in NumPy and Numba on the CPU, and CuPy, JAX and Numba on the GPU, where Python has them
# (rake benchmark:python; mdarray/peers.py).
#
# A run is from Ruby, or Python, until the result is there, on the device: nothing is transferred. Everything is compared with plain Ruby first, at a
# small size, bit by bit but for sums and products, and with each peer at the size that is timed: to a billionth, since libraries' compilers
# contract multiplications and additions.
#
#   ruby -Ilib benchmark/mdarray.rb     # ELEMENTS=, SIDE= of matrices, RUNS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require "tmpdir"
require_relative "harness"

class MDArrayBenchmark
  # What is computed: of which arrays, in Ikra, and by Ruby of nested Arrays. +loose+: in an order of one's own.
  Case = Struct.new(:name, :inputs, :ikra, :ruby, :loose, keyword_init: true)

  LIBRARIES = { cpu: %w[numpy numba], cuda: %w[cupy jax numba-cuda] }.freeze
  PEERS = File.expand_path("mdarray/peers.py", __dir__)
  # Runs before those that count, as in peers.py.
  WARMUP = 10
  # Of sums of as many elements, in whatever order.
  LOOSE = 1e-9
  # The same in 32 bits.
  SINGLE = 1e-6

  def initialize
    @bench = Harness.new("mdarray")
    @elements = @bench.size(:elements, 16_000_000, tiny: 1_000)
    @side = @bench.size(:side, 1_024, tiny: 16)
    @runs = @bench.size(:runs, 7, tiny: 1)
    @generator = Random.new(@bench.seed)
    Ikra.srand(@bench.seed)
  end

  def run
    Dir.mktmpdir("ikra-mdarray") do |folder|
      @bench.backends.each do |backend|
        Ikra.config.backend = backend
        cases.each { |work| measure(backend, work, folder) }
      end
    end
    @bench.finish
  end

  private

  def cases
    square = Math.sqrt(@elements).to_i
    [
      Case.new(name: "a*x + b*x*x", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x * 2.5 + x * 0.5 * x }, ruby: ->(x) { x.map { |e| e * 2.5 + e * 0.5 * e } }),
      Case.new(name: "a*x + b*x*x, f32", inputs: ->(n) { [random(n).to(:f32)] }, ikra: ->(x) { x * 2.5 + x * 0.5 * x },
               ruby: ->(x) { x.map { |e| single(single(e * 2.5) + single(single(e * 0.5) * e)) } }),
      Case.new(name: "sum", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x.sum }, ruby: ->(x) { x.sum }, loose: true),
      Case.new(name: "matmul", inputs: ->(n) { side = n < 1_000 ? 12 : @side; [random(side, side), random(side, side)] }, ikra: ->(a, b) { a.matmul(b) },
               ruby: ->(a, b) { columns = b.transpose; a.map { |row| columns.map { |column| row.zip(column).sum { |x, y| x * y } } } }, loose: true),
      Case.new(name: "stencil", inputs: ->(n) { side = n < 1_000 ? 20 : square; [random(side, side)] }, ikra: method(:blurred), ruby: method(:blurred_in_ruby)),
      Case.new(name: "sort", inputs: ->(n) { [random(n)] }, ikra: ->(x) { x.sort }, ruby: ->(x) { x.sort })
    ]
  end

  def measure(backend, work, folder)
    name = "#{backend}: #{work.name}"
    small = work.inputs.call(600)
    compare(name, work, work.ruby.call(*small.map(&:to_a)), plain(work.ikra.call(*small)))
    inputs = work.inputs.call(@elements)
    inputs.each { |array| there(array) }
    ours = @bench.time(name, runs: @runs, warmup: WARMUP) { there(work.ikra.call(*inputs)) }
    rate(name, inputs, ours)
    result = plain(work.ikra.call(*inputs))
    paths = inputs.each_with_index.map { |array, at| File.join(folder, "in#{at}.npy").tap { |path| array.write(path) } }
    LIBRARIES.fetch(backend, []).each { |library| peer(backend, library, work, paths, result, ours, File.join(folder, "out.npy")) }
  end

  def peer(backend, library, work, paths, result, ours, out)
    name = "#{backend}: #{work.name}: #{library}"
    found = @bench.python ? IO.popen([@bench.python, PEERS, library, work.name, @runs.to_s, out, *paths], err: File::NULL, &:read).lines.last : nil
    answer = found ? JSON.parse(found, symbolize_names: true) : { missing: @bench.python ? "it failed" : "no Python" }
    return @bench.note("#{name}: not measured, #{answer[:missing]}") if answer[:missing]

    theirs = Ikra::MDArray.read(out)
    theirs = theirs.size == 1 && result.is_a?(Float) ? theirs.to_flat_a.first : theirs.to_a
    @bench.same(name, true, close?(result, theirs, work.name.end_with?("f32") ? SINGLE : LOOSE))
    timing = @bench.timed(name, answer[:seconds])
    @bench.value("#{name}, against Ikra", timing.median / ours.median, "×")
  end

  def compare(name, work, expected, actual)
    return @bench.same(name, flat(expected), flat(actual)) unless work.loose

    @bench.same(name, true, close?(expected, actual, LOOSE))
  end

  def close?(expected, actual, tolerance)
    flat(expected).zip(flat(actual)).all? { |one, other| (one - other).abs <= tolerance * [one.abs, 1.0].max }
  end

  def flat(result) = [*result].flatten

  # Bytes that are read once, for each second.
  def rate(name, inputs, timing)
    @bench.value("#{name}, bytes read", inputs.sum(&:bytesize) / timing.median / 1e9, "GB/s")
  end

  def plain(result) = result.is_a?(Ikra::MDArray) ? result.to_a : result

  # Waits until it is computed, and moves one element.
  def there(result) = result.is_a?(Ikra::MDArray) ? result.flatten[0] : result

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
