# frozen_string_literal: true

# Whether the speed of a program depends on how it is written. benchmark/phrasings has several versions of each program
# of benchmark/programs: loops, fields, guards, classes and Arrays are those that different people choose.
#
# All of them must give plain Ruby's result: the same bits, or within the program's tolerance. Then they run in turn, in
# one process, and the best time of each counts. Each version's kernels must be almost as fast as those of the best.
# These must be as fast as those by hand. First calls, which compile, are not measured.
#
#   ruby -Ilib benchmark/phrasings.rb   # in the environment: PROGRAMS=map,life SIZE=tiny|small|normal SEED= RUNS=
#                                       # BUDGET= IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "suite/suite"
require_relative "suite/phrasing"

class PhrasingsBenchmark
  # The slowest version may take so many times the best one's time, and the best one must have this speed by hand.
  APART = 1.2
  BY_HAND = 0.95
  HAND = { cpu: ["c, OpenMP"], cuda: ["cuda by hand, nvcc", "cuda by hand, nvrtc"] }.freeze

  def initialize
    @names = Harness.chosen("PROGRAMS", Program.phrased)
    @bench = Harness.new("phrasings", small: true)
    @runs = Integer(ENV.fetch("RUNS", @bench.tiny? ? "1" : "5"))
    @failed = []
  end

  def run
    left_out = @names.reject { |name| @bench.spent? ? false : measure(name) }
    @bench.note("left out, as the time was over: #{left_out.join(", ")}") unless left_out.empty?
    @bench.finish
    abort "\nOther results:\n  #{@failed.join("\n  ")}" unless @failed.empty?
  end

  private

  # @return [true]
  def measure(name)
    program = Program.find(name).new(name)
    size = program.class.sizes.fetch(@bench.scale)
    puts "\n#{name}, size #{size}"
    hand = by_hand(name, size)
    found = @bench.backends.to_h do |backend|
      Ikra.config.backend = backend
      [backend, report(name, backend, measured(program, backend, size), hand[backend])]
    end
    @bench.record("phrasings", name, size: size, runs: @runs, backends: found)
    true
  end

  # The least seconds of the kernels by hand, by backend.
  def by_hand(name, size)
    versions = ["ruby", *HAND.values_at(*@bench.backends).flatten.compact].map { |version| Version.named(version) }
    suite = Suite.new(@bench, versions: versions)
    found = suite.measure(name, size, runs: @runs)[:versions]
    @failed.concat(suite.failed)
    HAND.transform_values { |by_hand| by_hand.filter_map { |version| found.dig(version, :phases, :kernel) || found.dig(version, :min) }.min }
  end

  # [kernel, whole] of each run of each version that gives what plain Ruby gives.
  def measured(program, backend, size)
    small = input(program, program.ruby_size(size))
    expected = program.in_ruby(small)
    good = program.phrasings.select { |name, phrasing| agrees?(phrasing, backend, name, expected) { phrasing.run(small) } }
    large = input(program, size)
    first = good.first&.last&.run(large)
    good.select! { |name, phrasing| agrees?(phrasing, backend, name, first) { phrasing.run(large) } }
    in_turn(good, large)
  end

  def input(program, size) = program.input(size, Random.new(@bench.seed))

  def agrees?(phrasing, backend, name, expected)
    difference = phrasing.difference(expected, yield)
    @failed << "#{phrasing.name}: #{backend}: #{name}: #{difference}" if difference
    difference.nil?
  rescue Ikra::Error => e
    @failed << "#{phrasing.name}: #{backend}: #{name}: #{e.message}"
    false
  end

  def in_turn(phrasings, input)
    states = {}
    times = phrasings.transform_values { [] }
    @runs.times do
      phrasings.each do |name, phrasing|
        states[name] = phrasing.state(input) if phrasing.changes? || !states.key?(name)
        GC.start
        profile = Ikra.profile { phrasing.compute(states[name]) }
        times[name] << [profile.phases.fetch(:kernel), profile.seconds]
      end
    end
    times
  end

  # Shows the versions, the best first, and holds them to what is promised. One that needs no kernel is only shown.
  #
  # @return [Hash] the record
  def report(name, backend, times, hand)
    found = times.to_h { |version, runs| [version, { kernel: runs.map(&:first).min, whole: runs.map(&:last).min }] }.sort_by { |_, time| time[:kernel] }.to_h
    best, worst = found.values.map { |time| time[:kernel] }.select(&:positive?).minmax
    return { by_hand: hand, versions: found } unless best

    puts "  #{backend}, kernel and whole call#{": by hand #{Harness.show(hand)}" if hand}"
    found.each do |version, time|
      time[:against_best] = time[:kernel] / best
      kernel = time[:kernel].zero? ? "no kernel" : format("%s %6.2f×", Harness.show(time[:kernel]), time[:against_best])
      puts format("  %-64s %20s %12s", version, kernel, Harness.show(time[:whole]))
    end
    @bench.target("#{name}: #{backend}: the slowest phrasing against the best", worst / best, at_most: APART)
    @bench.target("#{name}: #{backend}: the best phrasing against #{backend == :cuda ? "CUDA" : "C"} by hand", hand / best, at_least: BY_HAND) if hand
    { by_hand: hand, versions: found }
  end
end

PhrasingsBenchmark.new.run if $PROGRAM_NAME == __FILE__
