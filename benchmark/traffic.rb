# frozen_string_literal: true

# A million actors on a hundred thousand streets for a thousand ticks: `actors.peach(1000) { |actor| actor.move(weather) }`.
#
# Measured: the call as the user makes it, and its phases apart; the same on one core; a run by hand in C (one thread, and OpenMP) and in CUDA,
# their loops alone; plain Ruby with YJIT over the first actors only, scaled up. Each must end in the same state, to the bit, before it is
# timed. The slice of plain Ruby stays in the cache, which a million actors would not: scaling it up flatters Ruby.
# Not measured: making the network and the actors; loading Ikra.
#
#   ruby -Ilib benchmark/traffic.rb          # ACTORS=, STREETS=, TICKS=, SLICE=, RUNS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "tmpdir"
require "ikra"
require_relative "harness"
require_relative "traffic/columns"

class TrafficBenchmark
  HERE = __dir__
  BUILT = File.expand_path("../tmp/benchmark", HERE)
  PHASES = %i[compile trace pack upload kernel download unpack].freeze
  WEATHER = Traffic::Weather::Rainy

  def initialize
    @bench = Harness.new("traffic")
    @actors_count = @bench.size(:actors, 1_000_000, tiny: 400)
    @streets_count = @bench.size(:streets, 100_000, tiny: 200)
    @ticks = @bench.size(:ticks, 1_000, tiny: 50)
    @slice = [@bench.size(:slice, 2_000, tiny: 100), @actors_count].min
    @runs = @bench.size(:runs, 3, tiny: 1)
    @network = Traffic::Network.grid(@streets_count)
    @actors = Traffic::Population.new(@network, deterministic: true).actors(@actors_count)
    @columns = TrafficColumns.new(@network, @actors)
    @begin = @actors.map { |actor| [actor.progress, actor.street, actor.dice] }
  end

  def run
    Dir.mktmpdir do |directory|
      @directory = directory
      @columns.write_input(file("input"), ticks: @ticks, weather: WEATHER)
      expect_what_ruby_gives
      by_hand = c
      @bench.backends.each { |backend| ikra(backend, by_hand) }
      one_core
      @bench.finish
    end
  end

  private

  def file(name)
    File.join(@directory, name)
  end

  def steps
    @actors_count * @ticks
  end

  # The state that all must reach: Ikra's reference for it is C's, and C's is checked with Ruby's on the slice.
  def expect_what_ruby_gives
    child = @bench.child(File.join(HERE, "traffic/sequential.rb"), @slice, @ticks, @streets_count, file("slice"), ruby: @bench.yjit)
    sequential = File.binread(file("slice"))
    slice = TrafficColumns.new(@network, @actors.first(@slice)).actors
    numbers = @columns.actors.each_with_index.to_h.compare_by_identity
    @in_slice = slice.map { |actor| numbers[actor] }
    @sequential = TrafficColumns.pick(sequential, 0...@slice)
    @bench.incomparable("ruby, slice", "the others are compared with it")
    seconds = @bench.timed("ruby, slice: #{child[:yjit] ? "YJIT" : "no JIT"}", [child[:seconds]]).median
    @ruby = seconds / (@slice * @ticks)
    @bench.value("ruby, the whole of it, scaled up from #{@slice} actors", @ruby * steps, "s")
  end

  def same(name, state)
    @bench.same("#{name} and ruby, on the slice", @sequential, TrafficColumns.pick(state, @in_slice))
    @expected ||= state
    @bench.same(name, @expected, state)
  end

  # Medians in seconds: :one_thread, :openmp, :cuda, where there is what builds them.
  def c
    found = {}
    source = %w[traffic.c traffic.h].map { |name| File.join(HERE, "baseline", name) }
    flags = %w[-O3 -march=native -ffp-contract=off -fopenmp]
    { "c" => [], "c, street in registers" => %w[-DKEEP_STREET] }.each do |name, defines|
      program = File.join(BUILT, name.tr(", ", "_"))
      next @bench.note("#{name}: no gcc") unless @bench.build(program, source, "gcc", *flags, *defines, source.first, "-o", program)

      { "one thread" => 1, "OpenMP" => @bench.cpus.size }.each do |how, threads|
        result = hand_written(program, "#{name}, #{how}", @runs, "OMP_NUM_THREADS" => threads.to_s)
        found["#{name}, #{how}"] = @bench.timed("#{name}, #{how}", result[:seconds]).median
      end
    end
    found.merge(cuda)
  end

  def cuda
    source = %w[traffic.cu traffic.h].map { |name| File.join(HERE, "baseline", name) }
    return {} unless @bench.gpu?

    { "cuda by hand" => [], "cuda by hand, street in registers" => %w[-DKEEP_STREET] }.each_with_object({}) do |(name, defines), found|
      program = File.join(BUILT, name.tr(", ", "_"))
      built = @bench.build(program, source, "nvcc", "-O3", "-fmad=false", "-arch=native", *defines, source.first, "-o", program)
      next @bench.note("#{name}: no nvcc") unless built

      result = hand_written(program, name, @runs + 1)
      %i[upload kernel download].each { |phase| found["#{name}: #{phase}"] = @bench.timed("#{name}: #{phase}", result[phase].drop(1)).median }
    end
  end

  def hand_written(program, name, runs, env = {})
    output = IO.popen(env, [program, file("input"), file("output"), runs.to_s], &:read)
    abort "#{program} failed" unless $?.success?
    same(name, File.binread(file("output")))
    JSON.parse(output, symbolize_names: true)
  end

  def ikra(backend, by_hand)
    first = simulate(backend)
    same(backend.to_s, @columns.state)
    @bench.timed("#{backend}: first call, compile", [first.phases.fetch(:compile, 0.0)])
    restore
    profiles = []
    whole = @bench.time("#{backend}: whole call", runs: @runs, warmup: 0, setup: -> { restore }) { profiles << simulate(backend) }.median
    same(backend.to_s, @columns.state)
    restore
    phases = PHASES.to_h { |phase| [phase, @bench.timed("#{backend}: #{phase}", profiles.map { |profile| profile.phases.fetch(phase, 0.0) }).median] }
    @bench.value("#{backend}: kernel per tick", phases[:kernel] / @ticks * 1e6, "µs")
    @bench.value("#{backend}: whole call against ruby, scaled up", @ruby * steps / whole, "×")
    against(backend, phases[:kernel], by_hand)
  end

  def against(backend, kernel, by_hand)
    best = backend == :cuda ? "cuda by hand: kernel" : "c, OpenMP"
    kept = backend == :cuda ? "cuda by hand, street in registers: kernel" : "c, street in registers, OpenMP"
    @bench.target("#{backend}: kernel against #{best}", by_hand[best] / kernel, at_least: 0.9) if by_hand[best]
    @bench.target("cpu: kernel against ruby, per core", @ruby * steps / kernel / @bench.cpus.size, at_least: 25) if backend == :cpu
    @bench.value("#{backend}: kernel against #{kept}", by_hand[kept] / kernel, "×") if by_hand[kept]
  end

  def simulate(backend)
    weather = WEATHER
    Ikra.profile { @actors.peach(@ticks, backend: backend) { |actor| actor.move(weather) } }
  end

  def restore
    @actors.zip(@begin) do |actor, (progress, street, dice)|
      actor.instance_variable_set(:@progress, progress)
      actor.instance_variable_set(:@street, street)
      actor.instance_variable_set(:@dice, dice)
    end
  end

  def one_core
    ticks = [@ticks, 100].min
    %w[allocated shuffled].each do |order|
      name = "one core, #{order}"
      result = @bench.child(File.join(HERE, "traffic/one_core.rb"), @actors_count, @streets_count, ticks, order, cores: 1)
      @bench.incomparable(name, "its actors use rand, so that they write two ivars")
      seconds = result[:phases].to_h { |phase, time| [phase, @bench.timed("#{name}: #{phase}", [time]).median] }
      marshalling(name, seconds)
      memory(name, result)
    end
  end

  def marshalling(name, seconds)
    objects = @actors_count + @network.streets.size
    %i[trace pack unpack].each { |phase| @bench.value("#{name}: #{phase} per object", seconds.fetch(phase, 0.0) / objects * 1e9, "ns") }
    @bench.target("#{name}: trace", seconds.fetch(:trace, 0.0) * 1e3, unit: "ms", at_most: 150)
    @bench.target("#{name}: write-back of two ivars", seconds.fetch(:unpack, 0.0) * 1e3, unit: "ms", at_most: 100)
  end

  def memory(name, result)
    return @bench.note("#{name}: peak memory cannot be measured here") unless result[:peak]

    @bench.target("#{name}: peak memory against columns", result[:peak] / result[:columns].to_f, at_most: 2.5)
  end
end

TrafficBenchmark.new.run if $PROGRAM_NAME == __FILE__
