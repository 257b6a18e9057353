# frozen_string_literal: true

# Whole programs, each in plain Ruby, with Ikra on the CPU and on CUDA, in C, in CUDA by hand, and in Python's
# libraries, where these are installed.
#
# Medians are measured. With Ikra and in plain Ruby a run is a call as a user makes it, from Ruby's objects to Ruby's
# objects; Ikra's phases are measured separately. In C it is only the loops. In CUDA by hand, upload, kernels and
# download are separate, and in Python, too, where there is a device.
#
# All versions get the same random input (SEED=, else a new one). A version is timed only if its output is plain Ruby's:
# with the same bits, or within the tolerance that benchmark/programs/NAME/program.rb gives and explains. Where plain
# Ruby would take minutes it runs on a smaller input, and its time is scaled up. Not measured: making the objects,
# reading the input, loading the libraries. The first run, which compiles, is recorded separately.
#
# No program begins after BUDGET seconds. A run over some programs or versions adds to the report's numbers of the
# others, if the sizes are the same.
#
#   ruby -Ilib benchmark/programs.rb      # in the environment: PROGRAMS=map,life SIZE=tiny|small|normal SEED= RUNS=
#                                         # VERSIONS="ruby;cpu" BUDGET=

require_relative "suite/suite"

class ProgramsBenchmark
  def initialize
    versions, @names = Version.chosen, Program.chosen
    @bench = Harness.new("programs", small: true)
    @suite = Suite.new(@bench, versions: versions)
    @runs = Integer(ENV.fetch("RUNS", @bench.tiny? ? "1" : "5"))
  end

  def run
    @bench.note "size #{@bench.scale}"
    found = @names.filter_map do |name|
      next left_out(name) if @bench.spent?

      size = Program.find(name).sizes.fetch(@bench.scale)
      puts "\n#{name}, size #{size}"
      [name, @suite.measure(name, size, runs: @runs)]
    end.to_h
    found.each { |name, program| @bench.record("programs", name, program) }
    summary(found)
    @bench.finish
    abort "\nOther results:\n  #{@suite.failed.join("\n  ")}" unless @suite.failed.empty?
  end

  private

  # @return [nil]
  def left_out(name)
    @bench.note("#{name} was left out: the budget of #{ENV["BUDGET"]} s is spent")
    nil
  end

  # The promised speed of kernels and of whole calls. Nothing is promised for a version that is not here.
  def targets(name, size, versions)
    wanted = Program.find(name).new(name).targets
    milliseconds(name, versions, wanted.fetch(:ms, {})) if size == Program.find(name).sizes.fetch(:normal)
    { cpu: ["c, OpenMP"], cuda: ["cuda by hand, nvcc", "cuda by hand, nvrtc"] }.each do |backend, by_hand|
      best = by_hand.filter_map { |other| versions.dig(other, :kernel) }.min
      kernel = versions.dig(backend.to_s, :kernel) or next
      @bench.target("#{name}: #{backend}: kernel against #{by_hand.first[/\w+/]} by hand", best / kernel, at_least: wanted[backend]) if best
      next unless backend == :cpu && wanted[:per_core] && versions["ruby"]

      @bench.target("#{name}: cpu: kernel against ruby, for each core", versions.dig("ruby", :median) / kernel / @bench.cpus.size, at_least: wanted[:per_core])
    end
  end

  # By backend. The time beside the kernel is the rest of a whole call.
  def milliseconds(name, versions, wanted)
    wanted.each do |backend, limits|
      whole, kernel = versions.fetch(backend.to_s, {}).values_at(:median, :kernel)
      next unless whole

      @bench.target("#{name}: #{backend}: kernel", kernel * 1e3, unit: "ms", at_most: limits.fetch(:kernel))
      @bench.target("#{name}: #{backend}: all of a call but the kernel", (whole - kernel) * 1e3, unit: "ms", at_most: limits.fetch(:beside))
    end
  end

  # A row for each program: times against plain Ruby, kernels against those by hand, lines of code.
  def summary(found)
    puts "\nWhole calls against plain Ruby, kernels against the fastest by hand (C with OpenMP; CUDA), and lines of code"
    puts format("  %-14s %10s %9s %9s %9s %9s   %s", "", "ruby", "cpu", "cuda", "cpu/C", "cuda/CUDA", "lines: ruby, ikra, c, cuda, numba, cupy, jax")
    found.each do |name, program|
      row(name, program[:versions])
      targets(name, program[:size], program[:versions])
    end
  end

  def row(name, versions)
    ruby = versions.dig("ruby", :median)
    speedup = ->(version) { ratio(ruby, versions.dig(version, :median)) }
    kernel = ->(version, *by_hand) { ratio(by_hand.filter_map { |other| versions.dig(other, :kernel) }.min, versions.dig(version, :kernel)) }
    lines = ["ruby", "cpu", "c, OpenMP", "cuda by hand, nvrtc", "numba", "cupy", "jax"].map { |version| lines(name, version) }
    puts format("  %-14s %10s %9s %9s %9s %9s   %s", name, ruby ? Harness.show(ruby) : "-", speedup.call("cpu"), speedup.call("cuda"),
                kernel.call("cpu", "c, OpenMP"), kernel.call("cuda", "cuda by hand, nvcc", "cuda by hand, nvrtc"), lines.join(" "))
  end

  def lines(name, version)
    program = Program.find(name).new(name)
    known = Version.named(version)
    known.there?(program) ? known.lines(program) : "-"
  end

  def ratio(one, other)
    one && other ? format("%.2f×", one / other) : "-"
  end
end

ProgramsBenchmark.new.run if $PROGRAM_NAME == __FILE__
