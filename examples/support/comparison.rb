# frozen_string_literal: true

require "ikra"
require "tmpdir"
require_relative "plain_map_reduce"

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
      ikra = { Ikra::Parallel => Sequential, Ikra.singleton_class => PlainMapReduce }.to_h { |owner, plain| [owner, replace(owner, methods_of(plain))] }
      yield
    ensure
      ikra.each { |owner, methods| replace(owner, methods) }
    end

    # Runs the program with the size given on the command line, and prints how long it took.
    # @return what the program returned
    def run(size)
      size = Integer(ARGV.first) if ARGV.first
      compare { yield size }
    end

    # Runs the program with the files given on the command line, or else with those that it makes.
    # @return what the program returned
    def run_on_files(program, size)
      return compare { program.run(ARGV) } if ARGV.any?

      Dir.mktmpdir do |directory|
        files = program.generate(directory, size)
        compare { program.run(files) }
      end
    end

    private

    def compare(&program)
      profile = Ikra.profile { timed("Ikra", &program) }
      result = profile.value
      puts format("%-24s %8.3f s", "  of that compiling", profile.phases.values_at(:source, :infer, :compile).sum)
      expected = timed("Sequential Ruby (#{jit})") { sequentially(&program) }
      puts same?(result, expected) ? "The results are the same." : "THE RESULTS DIFFER."
      result
    end

    def methods_of(mod) = mod.instance_methods.map { |name| mod.instance_method(name) }

    # Replaces Ikra's methods by these. Gives the methods before.
    def replace(owner, methods)
      methods.map do |method|
        owner.instance_method(method.name).tap do
          owner.remove_method(method.name)
          owner.define_method(method.name, method)
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
