# frozen_string_literal: true

# How times grow with the problem, from a hundred elements to ten million: whole calls in plain Ruby, with Ikra on the CPU and on CUDA, so that it shows from which
# size on each is worth it. The programs are those of benchmark/programs, with the same comparison of results at every size.
#
# Plain Ruby is measured up to the size at which it took longer than RUBY_LIMIT seconds.
#
#   ruby -Ilib benchmark/scaling.rb      # PROGRAMS=map,traffic RUBY_LIMIT=1 RUNS= SEED= in the environment

require_relative "suite/suite"

class ScalingBenchmark
  # One bound by memory, one by arithmetic, objects, and a pair of loops.
  PROGRAMS = "map,mandelbrot,black_scholes,nbody"

  def initialize
    @bench = Harness.new("scaling")
    @suite = Suite.new(@bench, versions: %w[ruby cpu cuda].map { |name| Version.named(name) }, seed: @bench.seed)
    @names = ENV.fetch("PROGRAMS", PROGRAMS).split(",")
    @limit = Float(ENV.fetch("RUBY_LIMIT", "1"))
    @runs = Integer(ENV.fetch("RUNS", @bench.tiny? ? "1" : "5"))
  end

  def run
    @names.each { |name| @bench.record("scaling", name, sizes(name)) }
    @bench.finish
    abort "\nOther results:\n  #{@suite.failed.join("\n  ")}" unless @suite.failed.empty?
  end

  private

  def sizes(name)
    slow = nil
    all = Program.find(name).sizes.fetch(:scaling)
    (@bench.tiny? ? all.first(2) : all).map do |size|
      puts "\n#{name}, size #{size}"
      found = @suite.measure(name, size, runs: @runs, ruby_size: slow || size)
      slow ||= size if found[:versions].dig("ruby", :median).to_f > @limit
      found
    end
  end
end

ScalingBenchmark.new.run if $PROGRAM_NAME == __FILE__
