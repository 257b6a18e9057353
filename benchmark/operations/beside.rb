# frozen_string_literal: true

require "tmpdir"
require_relative "../harness"

# Operations on whole arrays, which stay where they are computed, compared with the alternatives. On the CPU these are
# plain Ruby, C++ with OpenMP (peers.cpp), NumPy and Numba. On the GPU they are CUB (peers.cu), kernels written by hand
# (by_hand.cu), CuPy, JAX and Numba (peers.py), where they are installed (`rake benchmark:python`).
#
# A run is measured from Ruby, Python or C++ until the result exists where it was computed. Nothing is transferred.
# Kernels by hand are compared with Ikra's kernels, where a profile has these.
#
# Every result is first compared with plain Ruby at a small size, bit by bit, except for sums in another order. It is
# also compared with each alternative at the size that is timed, to a billionth, because libraries' compilers contract
# multiplications and additions.
class Beside
  # An operation: its input arrays, and the code for Ikra and for Ruby's nested Arrays. +loose+: sums may be in another
  # order. +apart+: the fraction of the elements that may differ from an alternative's, as where the last bit of a power
  # decides a count.
  Case = Struct.new(:name, :inputs, :ikra, :ruby, :loose, :apart, keyword_init: true)

  PEERS = { cpu: %w[c numpy numba], cuda: %w[cub cupy jax numba-cuda] }.freeze
  PYTHON = File.expand_path("peers.py", __dir__)
  BY_HAND = "by hand"
  NATIVE = { "c" => %w[peers.cpp g++ -O3 -march=native -ffp-contract=off -fopenmp], "cub" => %w[peers.cu nvcc -O3 -std=c++17 -arch=native] }.freeze
  BUILT = File.expand_path("../../tmp/benchmark/operations", __dir__)
  # The relative tolerance for sums of the same elements in another order.
  LOOSE = 1e-9
  # The same in 32 bits.
  SINGLE = 1e-6
  # How fast operations must be, compared with CUB's.
  WANTED = { %w[cub sum] => 0.95, %w[cub scan] => 0.8, %w[cub select] => 0.8, %w[cub sort] => 0.8 }.freeze
  # Runs before those that count, here and for the alternatives. The first one compiles, and an idle GPU needs some to
  # reach its clock.
  WARMUP = { cpu: 2, cuda: 10 }.freeze

  # The times of the kernels alone, by the names of backend and operation, where they were measured.
  attr_reader :kernels

  # @param wanted [Hash] how fast operations must be compared with alternatives, by the names of both
  def initialize(bench, runs, peers: PEERS, wanted: WANTED)
    @bench = bench
    @runs = runs
    @peers = peers
    @wanted = wanted
    @kernels = {}
  end

  # Measures an operation on the configured backend.
  def measure(backend, work, elements, small: 600)
    name = "#{backend}: #{work.name}"
    few = work.inputs.call(small)
    compare(name, work, work.ruby.call(*few.map(&:to_a)), plain(work.ikra.call(*few)))
    inputs = work.inputs.call(elements)
    inputs.each { |array| there(array) }
    @warmup = @bench.tiny? ? 1 : WARMUP.fetch(backend, 2)
    ours = time(name, inputs) { there(work.ikra.call(*inputs)) }
    @bench.value("#{name}, bytes read", inputs.sum(&:bytesize) / ours.median / 1e9, "GB/s")
    result = there(work.ikra.call(*inputs))
    Dir.mktmpdir("ikra-beside") do |folder|
      paths = inputs.each_with_index.map { |array, at| File.join(folder, "in#{at}.npy").tap { |path| array.write(path) } }
      @peers.fetch(backend, []).each do |library|
        timing = (kernel(name, work, inputs) if library == BY_HAND) || ours
        peer(name, library, work, paths, result, timing, File.join(folder, "out.npy"))
      end
    end
    ours
  end

  private

  # Seconds of the kernels alone. nil: the profile has none.
  def kernel(name, work, inputs)
    seconds = Array.new(@warmup + @runs) do
      result = nil
      profile = Ikra.profile { result = there(work.ikra.call(*inputs)) }
      dismiss(result, inputs)
      profile.phases.fetch(:kernel)
    end
    @kernels[name] = @bench.timed("#{name}: kernel", seconds.drop(@warmup)) if seconds.all?(&:positive?)
  end

  def dismiss(result, inputs)
    result.free if result.is_a?(Ikra::MDArray) && inputs.none? { |input| input.equal?(result) }
  end

  # Times one run after the other, as for the alternatives: a GPU that waits for the GC in between is slower. As with
  # theirs, the next run reuses the memory of a result, which is freed unless it is one of the inputs.
  def time(name, inputs)
    GC.start
    seconds = Array.new(@warmup + @runs) do
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      result = yield
      took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
      dismiss(result, inputs)
      took
    end
    @bench.timed(name, seconds.drop(@warmup))
  end

  def peer(backend_and_work, library, work, paths, result, ours, out)
    name = "#{backend_and_work}: #{library}"
    answer = ask(library, work.name, out, paths)
    return @bench.note("#{name}: not measured, #{answer[:missing]}") if answer[:missing]

    @bench.same(name, true, near?(result, Ikra::MDArray.read(out), work.name.end_with?("f32") ? SINGLE : LOOSE, work.apart || 0))
    timing = @bench.timed(name, answer[:seconds])
    ratio, wanted = timing.median / ours.median, @wanted[[library, work.name]]
    wanted ? @bench.target("#{name}, against Ikra", ratio, at_least: wanted) : @bench.value("#{name}, against Ikra", ratio, "×")
  end

  # The answer of a library: seconds, or why there are none.
  def ask(library, operation, out, paths)
    command = command(library)
    return { missing: command } if command.is_a?(String)

    said = IO.popen([{ "WARMUP" => @warmup.to_s }, *command, operation, @runs.to_s, out, *paths], err: File::NULL, &:read).lines.last
    said ? JSON.parse(said, symbolize_names: true) : { missing: "it failed" }
  end

  def command(library)
    return [RbConfig.ruby, "-I#{@bench.ikra}", File.expand_path("by_hand.rb", __dir__)] if library == BY_HAND
    return @bench.python ? [@bench.python, PYTHON, library] : "no Python" unless NATIVE.key?(library)

    source, *compiler = NATIVE.fetch(library)
    source, target = File.join(__dir__, source), File.join(BUILT, library)
    built = @bench.build(target, [source, File.join(__dir__, "npy.hpp")], *compiler, source, "-o", target)
    built ? [target] : "#{compiler.first} is not installed"
  end

  def compare(name, work, expected, actual)
    return @bench.same(name, flat(expected), flat(actual)) unless work.loose

    @bench.same(name, true, close?(expected, actual, LOOSE))
  end

  def close?(expected, actual, tolerance)
    expected, actual = flat(expected), flat(actual)
    expected.size == actual.size && expected.zip(actual).all? { |one, other| (one - other).abs <= tolerance * [one.abs, 1.0].max }
  end

  # As {#close?}, without moving the elements.
  def near?(ours, theirs, tolerance, apart)
    return close?(ours, theirs.to_a, tolerance) unless ours.is_a?(Ikra::MDArray)

    ours.size == theirs.size && ours.flatten.combine(theirs.flatten) { |x, y| (x - y).abs > tolerance * (x.abs > 1.0 ? x.abs : 1.0) }.count(true) <= apart * ours.size
  end

  def flat(result) = [*result].flatten

  def plain(result) = result.is_a?(Ikra::MDArray) ? result.to_a : result

  # Waits until the result is computed. It stays where it is.
  def there(result) = result.is_a?(Ikra::MDArray) ? result.sync : result
end
