# frozen_string_literal: true

# How times grow with the problem, from a hundred elements to ten million. It measures whole calls in plain Ruby, and
# with Ikra on the CPU and on CUDA, and shows from which size on each is worth it. The programs are those of
# benchmark/programs, and results are compared at every size.
#
# Plain Ruby runs where its time at the size before predicts no more than RUBY_LIMIT seconds. Beyond, its time is scaled
# up. The small sizes of all programs come first. No size begins after BUDGET seconds, and no version takes longer than
# LIMIT.
#
#   ruby -Ilib benchmark/scaling.rb   # PROGRAMS=map,traffic RUBY_LIMIT=5 RUNS= SEED= LIMIT= BUDGET= in the environment

require_relative "suite/suite"

class ScalingBenchmark
  def initialize
    @names = Program.chosen
    @bench = Harness.new("scaling")
    @suite = Suite.new(@bench, versions: %w[ruby cpu cuda].map { |name| Version.named(name) }, seed: @bench.seed)
    @limit = Float(ENV.fetch("RUBY_LIMIT", "5"))
    @runs = Integer(ENV.fetch("RUNS", @bench.tiny? ? "1" : "5"))
    @found = @names.to_h { |name| [name, []] }
  end

  def run
    places = Program.places(@names, steps: @bench.tiny? ? 2 : nil)
    left_out = places.filter_map { |name, size| @bench.spent? ? "#{name}, #{size}" : measure(name, size) }
    @bench.note("left out, as the time was over: #{left_out.join("; ")}") unless left_out.empty?
    @found.each { |name, sizes| @bench.record("scaling", name, sizes) unless sizes.empty? }
    @bench.finish
    abort "\nOther results:\n  #{@suite.failed.join("\n  ")}" unless @suite.failed.empty?
  end

  private

  # @return [nil]
  def measure(name, size)
    puts "\n#{name}, size #{size}"
    @found[name] << @suite.measure(name, size, runs: @runs, ruby_size: ruby_size(name, size))
    nil
  end

  # This size, or the last one at which plain Ruby ran.
  def ruby_size(name, size)
    last = @found[name].reverse.find { |found| found[:ruby_size] == found[:size] && found[:versions]["ruby"] } or return size
    program = Program.find(name).new(name)
    last[:versions]["ruby"][:median] * program.ratio(size, last[:size]) > @limit ? last[:size] : size
  end
end

ScalingBenchmark.new.run if $PROGRAM_NAME == __FILE__
