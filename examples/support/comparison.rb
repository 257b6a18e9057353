# frozen_string_literal: true

require "ikra"

# Runs a program twice, with Ikra and as plain Ruby, where its calls have no `p`, and compares the results.
module Comparison
  # The same methods without Ikra.
  module Sequential
    def pmap(**, &block) = map(&block)

    def peach(ticks = 1, **, &block)
      ticks.times { each(&block) }
      self
    end
  end

  class << self
    # The block's value, with `pmap` as `map` and `peach` as `each`.
    def sequentially
      ikra = replace(Sequential.instance_methods.map { |name| Sequential.instance_method(name) })
      yield
    ensure
      replace(ikra)
    end

    # Runs the program with the size given on the command line, and prints how long it took.
    # @return what the program returned
    def run(size)
      size = Integer(ARGV.first) if ARGV.first
      profile = Ikra.profile { timed("Ikra") { yield size } }
      result = profile.value
      puts format("%-24s %8.3f s", "  of that compiling", profile.phases.values_at(:source, :infer, :compile).sum)
      expected = timed("Sequential Ruby (#{jit})") { sequentially { yield size } }
      puts same?(result, expected) ? "The results are the same." : "THE RESULTS DIFFER."
      result
    end

    private

    # Replaces Ikra's methods by these. Gives the methods before.
    def replace(methods)
      methods.map do |method|
        Ikra::Parallel.instance_method(method.name).tap do
          Ikra::Parallel.remove_method(method.name)
          Ikra::Parallel.define_method(method.name, method)
        end
      end
    end

    # With `==`, 1 would equal 1.0, and NaN would not equal itself.
    def same?(result, expected) = Marshal.dump(result) == Marshal.dump(expected)

    def timed(name)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield.tap { puts format("%-24s %8.3f s", name, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) }
    end

    def jit = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "YJIT" : "no JIT"
  end
end
