# frozen_string_literal: true

# The parallel Enumerable from Ruby to Ruby: warm calls on Arrays of Floats, Integers and objects, compared with Ruby's
# own methods.
#
# Not measured: loading Ruby and Ikra, and compiling. Arguments and results are Ruby's objects, so that reading and
# making these takes most of the time. +kernel+ is the time of the section itself.
#
#   ruby -Ilib benchmark/enumerable.rb      # ELEMENTS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "harness"

class EnumerableBenchmark
  class Actor
    attr_reader :street, :progress

    def initialize(street, progress)
      @street = street
      @progress = progress
    end
  end

  def initialize
    @bench = Harness.new("enumerable")
    @count = @bench.size(:elements, 1_000_000, tiny: 500)
    @floats = Array.new(@count) { |i| (i * 7919) % 1_000_003 / 7.0 }
    @integers = Array.new(@count) { |i| (i * 7919) % 1_000_003 }
    @actors = Array.new(@count) { |i| Actor.new(i * 31 % 97, @floats[i]) }
    @side = Integer.sqrt(@count)
    @grid = Array.new(@side) { |y| Array.new(@side) { |x| (x * y).to_f } }
  end

  def run
    compare("select") { |run| run.(@floats, :select) { |x| x > 1000.0 } }
    compare("select actors") { |run| run.(@actors, :select) { |actor| actor.progress > 1000.0 } }
    compare("partition") { |run| run.(@integers, :partition) { |x| x % 3 == 1 } }
    compare("count") { |run| run.(@integers, :count) { |x| x % 3 == 1 } }
    compare("find") { |run| run.(@integers, :find) { |x| x > 1_000_002 } }
    compare("sum of a block") { |run| run.(@floats, :sum) { |x| x * 0.5 } }
    compare("reduce") { |run| run.(@integers, :reduce) { |a, b| a > b ? a : b } }
    compare("sort") { |run| run.(@integers, :sort) }
    compare("sort by a block") { |run| run.(@integers, :sort) { |a, b| b <=> a } }
    compare("sort_by") { |run| run.(@floats, :sort_by) { |x| -x } }
    compare("min_by") { |run| run.(@actors, :min_by) { |actor| -actor.progress } }
    compare("group_by") { |run| run.(@actors, :group_by) { |actor| actor.street } } # rubocop:disable Style/SymbolProc
    alone("scan") { |backend| @integers.pscan(backend: backend) { |a, b| a + b }.last }
    alone("combine") { |backend| @floats.pcombine(@integers, backend: backend) { |x, y| x * y }.last }
    alone("stencil of five") do |backend|
      @grid.pstencil([[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]], 0.0, backend: backend) { |n, w, c, e, s| c + 0.1 * (n + w + e + s - 4.0 * c) }.last.last
    end
    @bench.finish
  end

  private

  # Compares a method of Ruby with Ikra's. The block calls it through its argument.
  def compare(name)
    ruby = -> { yield(->(base, method, &block) { base.public_send(method, &block) }) }
    expected = ruby.call
    @bench.incomparable("#{name}: Ruby", "it is what the others are compared with")
    alone_ruby = @bench.time("#{name}: Ruby", runs: 3) { ruby.call }
    @bench.backends.each do |backend|
      ikra = -> { yield(->(base, method, &block) { base.public_send(:"p#{method}", backend: backend, &block) }) }
      @bench.same("#{name}: #{backend}", Array(expected), Array(ikra.call))
      timing = @bench.time("#{name}: #{backend}", runs: 3) { ikra.call }
      kernel(name, backend, ikra)
      @bench.value("#{name}: #{backend} against Ruby", alone_ruby.median / timing.median, "×")
    end
  end

  def alone(name)
    expected = nil
    @bench.backends.each do |backend|
      value = yield(backend)
      @bench.same("#{name}: #{backend}", [expected ||= value], [value])
      @bench.time("#{name}: #{backend}", runs: 3) { yield(backend) }
      kernel(name, backend, -> { yield(backend) })
    end
  end

  def kernel(name, backend, work)
    @bench.value("#{name}: #{backend}, kernels alone", Ikra.profile { work.call }.phases.fetch(:kernel) * 1e3, "ms")
  end
end

EnumerableBenchmark.new.run if $PROGRAM_NAME == __FILE__
