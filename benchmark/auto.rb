# frozen_string_literal: true

# Tests whether `auto` picks the faster backend. Every program runs at every size of its scale, with Ikra on the CPU, on
# CUDA, and with `auto`, each in a process of its own. `auto` is timed after SETTLE seconds of calls, when it has
# measured what it decides by. Results are compared as everywhere.
#
# `auto` was right where the backend that it ended with takes no more than NEAR times as long as the other one. Where
# blocks of one program ended on different backends, its own time is compared instead. The time that it lost by a wrong
# choice is printed, too. Tracing, packing and writing back are the same for all backends, and vary more from run to run
# than backends differ. So all three are given the same time for them.
#
#   ruby -Ilib benchmark/auto.rb      # PROGRAMS=map,traffic RUNS= SETTLE= BUDGET= SEED= in the environment

require_relative "suite/suite"

class AutoBenchmark
  NEAR = 1.1
  # The times of the versions at one size, and the backends of `auto`.
  Choice = Struct.new(:program, :size, :cpu, :cuda, :auto, :backends) do
    def best = [cpu, cuda].min
    def taken = [auto, *({ "cpu" => cpu, "cuda" => cuda }[backends.first] if backends.size == 1)].min
    def right? = taken <= best * NEAR

    def to_s
      both = "cpu #{Harness.show(cpu)}, cuda #{Harness.show(cuda)}"
      "#{program}, #{size}: #{cpu < cuda ? "cpu" : "cuda"} is faster (#{both}), auto ended with #{backends.join(" and ")} (#{Harness.show(auto)})"
    end
  end

  def initialize
    @names = Program.chosen
    @bench = Harness.new("auto")
    versions = [Version.named("cpu"), Version.named("cuda"), Version.auto(settle: @bench.tiny? ? 0 : Float(ENV.fetch("SETTLE", "2")))]
    @suite = Suite.new(@bench, versions: versions, seed: @bench.seed)
    @runs = Integer(ENV.fetch("RUNS", @bench.tiny? ? "1" : "5"))
    @left_out = []
  end

  def run
    Program.places(@names, steps: @bench.tiny? ? 1 : nil).each { |name, size| measure(name, size) }
    conclude unless choices.empty?
    @bench.note("left out, as the time was over: #{@left_out.join("; ")}") unless @left_out.empty?
    @bench.finish
    abort "\nOther results:\n  #{@suite.failed.join("\n  ")}" unless @suite.failed.empty?
  end

  private

  def measure(name, size)
    return @left_out << "#{name}, #{size}" if @bench.spent?

    puts "\n#{name}, size #{size}"
    found = @suite.measure(name, size, runs: @runs, ruby_size: size)
    versions = found[:versions].values_at("cpu", "cuda", "auto")
    return unless versions.all? { |version| version&.key?(:median) }

    marshalling = versions.map { |version| version[:marshalling] }.min
    choices << Choice.new(name, size, *versions.map { |version| version[:median] - version[:marshalling] + marshalling }, versions.last[:backends])
    puts "  #{choices.last.right? ? "right" : "WRONG"}: #{choices.last.backends.join(" and ")}"
  end

  def choices = @choices ||= []

  def conclude
    wrong = choices.reject(&:right?)
    @bench.record("choices", "all", choices.map { |choice| choice.to_h.merge(right: choice.right?) })
    wrong.each { |choice| @bench.note(choice.to_s) }
    @bench.value("sizes of programs", choices.size, "")
    @bench.value("time lost where it was wrong, of all", wrong.sum { |choice| choice.taken - choice.best } / choices.sum(&:best) * 100, "%")
    @bench.target("auto picks the faster backend", (choices.size - wrong.size) * 100.0 / choices.size, unit: "%", at_least: 95)
  end
end

AutoBenchmark.new.run if $PROGRAM_NAME == __FILE__
