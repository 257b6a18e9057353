# frozen_string_literal: true

require "tmpdir"
require_relative "../harness"

# Operations on whole arrays that lie where they are computed, beside what one would have written otherwise: plain Ruby, C++ with OpenMP (peers.cpp), NumPy and
# Numba on the CPU; CUB (peers.cu), kernels written by hand (by_hand.cu), CuPy, JAX and Numba on the GPU, where they are installed (`rake benchmark:python`; peers.py).
#
# A run is from Ruby, or Python, or C++, until the result is there, where it was computed: nothing is transferred. Kernels by hand are compared with Ikra's kernels, where a
# profile has these. Everything is compared with plain Ruby first, at
# a small size, bit by bit but for what is added in another order, and with each peer at the size that is timed: to a billionth, since libraries' compilers
# contract multiplications and additions.
class Beside
  # What is computed: of which arrays, in Ikra, and by Ruby of nested Arrays. +loose+: in an order of one's own. +apart+: the part of the elements that may differ
  # from a peer's, as where the last bit of a power decides on a count.
  Case = Struct.new(:name, :inputs, :ikra, :ruby, :loose, :apart, keyword_init: true)

  PEERS = { cpu: %w[c numpy numba], cuda: %w[cub cupy jax numba-cuda] }.freeze
  PYTHON = File.expand_path("peers.py", __dir__)
  BY_HAND = "by hand"
  NATIVE = { "c" => %w[peers.cpp g++ -O3 -march=native -ffp-contract=off -fopenmp], "cub" => %w[peers.cu nvcc -O3 -std=c++17 -arch=native] }.freeze
  BUILT = File.expand_path("../../tmp/benchmark/operations", __dir__)
  # Of sums of as many elements, in whatever order.
  LOOSE = 1e-9
  # The same in 32 bits.
  SINGLE = 1e-6
  # How fast operations are to be beside CUB's.
  WANTED = { %w[cub sum] => 0.95, %w[cub scan] => 0.8, %w[cub select] => 0.8, %w[cub sort] => 0.8 }.freeze
  # Runs before those that count, here and in the peers: one compiles, and a GPU that was idle takes some to get to its clock.
  WARMUP = { cpu: 2, cuda: 10 }.freeze

  # What kernels alone took, by the backend's and the operation's name, where that was measured.
  attr_reader :kernels

  # @param wanted [Hash] how fast operations are to be beside peers', by the names of both
  def initialize(bench, runs, peers: PEERS, wanted: WANTED)
    @bench = bench
    @runs = runs
    @peers = peers
    @wanted = wanted
    @kernels = {}
  end

  # Measures a case on a backend, which is the configured one.
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

  # Seconds of the kernels alone; nil: a profile knows of none.
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

  # One run after the other, as in the peers: a GPU that waits for a run of the GC in between is slower. As theirs, a result's memory is there for the next: it
  # is given back, where it is not one of the inputs.
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

  # What a library says: seconds, or why there are none.
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

  # As {#close?}, where the elements are.
  def near?(ours, theirs, tolerance, apart)
    return close?(ours, theirs.to_a, tolerance) unless ours.is_a?(Ikra::MDArray)

    ours.size == theirs.size && ours.flatten.combine(theirs.flatten) { |x, y| (x - y).abs > tolerance * (x.abs > 1.0 ? x.abs : 1.0) }.count(true) <= apart * ours.size
  end

  def flat(result) = [*result].flatten

  def plain(result) = result.is_a?(Ikra::MDArray) ? result.to_a : result

  # Waits until it is computed, where it is.
  def there(result) = result.is_a?(Ikra::MDArray) ? result.sync : result
end
