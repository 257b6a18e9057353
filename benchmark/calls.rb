# frozen_string_literal: true

# What a call costs in addition to its work. Three kinds of calls are measured:
#
# * a warm +pmap+ of a thousand Integers, from Ruby to Ruby;
# * a warm +map+ of an array on the device, whose result is not waited for;
# * first calls of a block of ten lines, without a cache and from the disk cache.
#
# Where nvcc is installed, warm maps are compared with the driver's own time to launch the same kernel, and to launch it
# and wait.
#
# Not measured: loading Ruby and Ikra. On CUDA "beyond the context" is the first call of a later block, when the first
# block's call has made the context.
#
#   ruby -Ilib benchmark/calls.rb          # CALLS=, PROCESSES= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "tmpdir"
require "ikra"
require_relative "harness"
require_relative "calls/by_hand"
require_relative "calls/launches"

class CallsBenchmark
  BLOCKS = 6
  # Calls of +map+ between two waits: few, after which the device is not yet behind, and many.
  LOOPS = { "200 in a row" => 200, "5000 in a row" => 5_000 }.freeze

  def initialize
    @bench = Harness.new("calls")
    @calls = @bench.size(:calls, 2_000, tiny: 3)
    @processes = @bench.size(:processes, 5, tiny: 1)
    @numbers = Array.new(1_000) { |index| index }
  end

  def run
    @bench.backends.each do |backend|
      warm(backend)
      resident if backend == :cuda
      first_calls(backend)
    end
    compiler_alone if @bench.backends.include?(:cuda)
    @bench.finish
  end

  private

  def warm(backend)
    numbers = @numbers
    factor = 3
    name = "#{backend}: warm pmap of 1000 Integers"
    @bench.same(name, numbers.map { |n| n * factor + 1 }, numbers.pmap(backend: backend) { |n| n * factor + 1 })
    runs = Array.new(@calls) do
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      numbers.pmap(backend: backend) { |n| n * factor + 1 }
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    end
    median = @bench.timed(name, runs).median
    @bench.target(name, median * 1e6, unit: "µs", at_most: 30) if backend == :cpu
  end

  # Calls over an array that is on the device.
  def resident
    # Options in the call would take another path.
    Ikra.configure { |config| config.backend = :cuda }
    array = Ikra::MDArray.new(@numbers.map(&:to_f))
    driver = Launches.measured(@bench)
    waited(array, driver)
    queued(array, driver)
  end

  # A call and the wait for its result, compared with the same for a launch of the same kernel by hand.
  def waited(array, driver)
    name = "cuda: warm map of 1000 Floats on the device, waited for"
    @bench.same(name, @numbers.map { |n| n * 2.0 }, array.map { |x| x * 2.0 }.to_a)
    runs = Array.new([@calls / 20, 1].max) do
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      200.times { array.map { |x| x * 2.0 }.sync }
      (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) / 200
    end
    median = @bench.timed(name, runs).median
    @bench.target("#{name}, beyond the driver's launch and wait", (median * 1e6) - driver.fetch(:waited), unit: "µs", at_most: 5) if driver
  end

  # The host's time until the call returns, compared with a launch by hand. The device works meanwhile.
  def queued(array, driver)
    LOOPS.each do |loop, count|
      name = "cuda: warm map of 1000 Floats on the device, #{loop}"
      made = array.map { |x| x * 2.0 }
      @bench.same(name, @numbers.map { |n| n * 2.0 }, made.to_a)
      runs = Array.new([@calls / 20, 1].max) do
        array.sync
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        count.times { made = array.map { |x| x * 2.0 } }
        taken = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
        made.sync
        taken / count
      end
      median = @bench.timed(name, runs).median
      @bench.target("#{name}, beyond the driver's launch", (median * 1e6) - driver.fetch(:queued), unit: "µs", at_most: 5) if driver
    end
  end

  def first_calls(backend)
    cold = { first: [], others: [] }
    cached = { first: [], others: [] }
    @processes.times do
      Dir.mktmpdir do |directory|
        blocks = File.join(directory, "blocks.rb")
        File.write(blocks, source)
        [cold, cached].each { |found| fresh_process(backend, blocks, directory).each { |key, seconds| found[key].concat(Array(seconds)) } }
      end
    end
    report(backend, "nothing cached", cold)
    report(backend, "from the disk cache", cached)
  end

  # The part of a new block's first call on CUDA that is not Ikra's.
  def compiler_alone
    by_hand = ByHand.new
    { "an empty kernel" => ByHand::NOTHING, "the block written by hand, unchecked" => ByHand::BLOCK }.each do |what, source|
      name = "NVRTC alone: #{what}"
      @bench.incomparable(name, "nothing runs")
      @bench.timed(name, by_hand.seconds(source, @processes * (BLOCKS - 1)))
    end
  end

  def fresh_process(backend, blocks, directory)
    @bench.child(File.expand_path("calls/first.rb", __dir__), backend, blocks, env: { "IKRA_CACHE_DIR" => File.join(directory, "cache") })
  end

  def report(backend, state, found)
    first, others = found.map do |key, seconds|
      name = "#{backend}: #{key == :first ? "first call of a process" : "first call of another block"}, #{state}"
      @bench.incomparable(name, "the process that was timed compares its results with map's itself")
      [name, @bench.timed(name, seconds).median]
    end
    limits(backend, state).zip([first, others]) { |limit, (name, median)| @bench.target(name, median * 1e3, unit: "ms", at_most: limit) if limit }
  end

  # The limits in milliseconds for the first call of a process, and of another block.
  def limits(backend, state)
    case backend
    when :cpu then [5, 5]
    when :cuda then state == "nothing cached" ? [450, 40] : [nil, 5]
    else [nil, nil]
    end
  end

  # The source of blocks of ten lines, all different, so that no cache has them.
  def source
    blocks = Array.new(BLOCKS) { |number| <<~RUBY }
      work#{number} = proc do |n|
        x = n + #{number}
        steps = 0
        while x > 1 && steps < 200
          x = x.even? ? x / 2 : 3 * x + #{2 * number + 1}
          steps += 1
        end
        steps -= #{number} if steps > 100
        y = steps * 0.5
        y > 25.0 ? y - x : y + x
      end
      BLOCKS << ->(numbers, backend) { backend ? numbers.pmap(backend: backend, &work#{number}) : numbers.map(&work#{number}) }
    RUBY
    "# frozen_string_literal: true\n\nBLOCKS = []\n#{blocks.join("\n")}"
  end
end

CallsBenchmark.new.run if $PROGRAM_NAME == __FILE__
