# frozen_string_literal: true

# Objects that stay on the device between calls: the traffic simulation of benchmark/programs/traffic, called tick by
# tick in a scope of Ikra.resident. The time includes packing and write-back. It is compared with the time of the
# kernels alone (one launch and one wait for each tick), and with one call for all ticks.
#
# The first scope is not counted, because it compiles and traces the objects. Not measured: making the objects.
#
#   ruby -Ilib benchmark/residency.rb   # ACTORS=, TICKS=, RUNS=, SEED=, IKRA_BENCH_BACKENDS=cpu,cuda in the environment

require "ikra"
require_relative "harness"
require_relative "calls/launches"
require_relative "../examples/traffic/model"

class ResidencyBenchmark
  WEATHER = Traffic::Weather::Rainy

  def initialize
    @bench = Harness.new("residency")
    @actors = @bench.size(:actors, 1_000_000, tiny: 200)
    @ticks = @bench.size(:ticks, 1_000, tiny: 3)
    @runs = @bench.size(:runs, 7, tiny: 1)
  end

  def run
    compare
    @bench.backends.each { |backend| measure(backend) }
    @bench.finish
  end

  private

  # So many actors in a town with a tenth as many streets. They are the same for the same seed.
  def people(count)
    network = Traffic::Network.grid([count / 10, 16].max, seed: @bench.seed)
    Traffic::Population.new(network, seed: @bench.seed, deterministic: true).actors(count)
  end

  def state(actors) = actors.map { |actor| [actor.street.from, actor.street.to, actor.progress, actor.dice] }

  # Compares results with fewer actors and ticks, which plain Ruby can do, too.
  def compare
    count, ticks = [@actors, 2_000].min, [@ticks, 50].min
    expected = people(count).tap { |actors| ticks.times { actors.each { |actor| actor.move(WEATHER) } } }
    @bench.backends.each do |backend|
      found = people(count)
      scope(found, ticks, backend)
      @bench.same(backend.to_s, state(expected), state(found))
    end
  end

  def scope(actors, ticks, backend)
    started = clock
    first = last = nil
    Ikra.resident(actors, arrays: :fixed) do
      ticks.times do
        actors.peach(backend: backend) { |actor| actor.move(WEATHER) }
        first ||= clock
      end
      last = clock
    end
    ended = clock
    { whole: ended - started, first: first - started, others: last - first, leaving: ended - last }
  end

  def measure(backend)
    actors = people(@actors)
    scope(actors, @ticks, backend)
    scopes = Array.new(@runs) { GC.start.then { scope(actors, @ticks, backend) } }
    whole = @bench.timed("#{backend}: #{@ticks} calls in a scope", scopes.map { |times| times[:whole] })
    { first: "the first call", others: "the other calls, queued where they surely end", leaving: "the end of the scope" }.each do |part, name|
      @bench.timed("#{backend}: of which #{name}", scopes.map { |times| times[part] })
    end
    compare_with_floor(actors, whole.median, backend)
    at_once(actors, backend)
  end

  def compare_with_floor(actors, whole, backend)
    launches = backend == :cuda ? Launches.measured(@bench) : { empty: 0.0 }
    return unless launches

    floor = kernels(actors, backend) + @ticks * launches.fetch(:empty) / 1e6
    @bench.value("#{backend}: kernels, one launch a tick, with the wait for each", floor * 1e3, "ms")
    @bench.target("#{backend}: a scope against its kernels with a wait for each", whole / floor, at_most: 1.3) if backend == :cuda
  end

  # Seconds in kernels of all ticks. In a profile each call is waited for.
  def kernels(actors, backend)
    profile = Ikra.profile { scope(actors, @ticks, backend) }
    profile.phases.fetch(:kernel)
  end

  def at_once(actors, backend)
    actors.peach(@ticks, backend: backend) { |actor| actor.move(WEATHER) }
    seconds = Array.new(@runs) do
      GC.start
      started = clock
      actors.peach(@ticks, backend: backend) { |actor| actor.move(WEATHER) }
      clock - started
    end
    @bench.timed("#{backend}: one call of #{@ticks} ticks", seconds)
  end

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

ResidencyBenchmark.new.run if $PROGRAM_NAME == __FILE__
