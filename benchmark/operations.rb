# frozen_string_literal: true

# What a chain of +plazy+ costs beside the one block that does all its arithmetic: chains of 1, 10 and 100 maps that are one kernel, the
# same maps one after the other, and a reduction that is a part of the kernel before it.
#
# Kernel times are those of Ikra's profile; the others are from Ruby to Ruby, in which packing Floats and making new ones is most.
#
#   ruby -Ilib benchmark/operations.rb     # ELEMENTS=, RUNS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "harness"

class OperationsBenchmark
  LENGTHS = [1, 10, 100].freeze

  def initialize
    @bench = Harness.new("operations")
    @elements = @bench.size(:elements, 4_000_000, tiny: 1_000)
    @runs = @bench.size(:runs, 7, tiny: 1)
    @floats = Array.new(@elements) { |index| index / 7.0 }
  end

  def run
    @bench.backends.each do |backend|
      LENGTHS.each { |length| maps(backend, length) }
      reduction(backend)
    end
    @bench.finish
  end

  private

  def maps(backend, length)
    chain = (1..length).reduce(@floats.plazy(backend: backend)) { |so_far, _| so_far.map { |x| x * 0.999 + 0.5 } }
    block = one_block(length)
    fused = "#{backend}: #{length} maps in a chain"
    by_hand = "#{backend}: #{length} maps in one block"
    separate = "#{backend}: #{length} maps one after the other"
    expected = @floats.first(1_000).map(&block)
    explanation = Ikra.explain { @bench.same(fused, @bench.bits(expected), @bench.bits(chain.first(1_000))) }
    @bench.same(by_hand, @bench.bits(chain.to_a), @bench.bits(@floats.pmap(backend: backend, &block)))
    @bench.value("#{fused}: kernels", explanation.chains.first.kernels.size, "")
    one, other = kernel(fused) { chain.to_a }, kernel(by_hand) { @floats.pmap(backend: backend, &block) }
    @bench.target("#{fused}, kernel, against one block", one / other, at_most: 1.1)
    @bench.time(fused, runs: @runs) { chain.to_a }
    @bench.time(by_hand, runs: @runs) { @floats.pmap(backend: backend, &block) }
    return if length == 1

    @bench.same(separate, @bench.bits(expected), @bench.bits(separately(backend, length, @floats.first(1_000))))
    kernel(separate) { separately(backend, length, @floats) }
  end

  def reduction(backend)
    chain = @floats.plazy(backend: backend).map { |x| x * 0.999 }.select { |x| x > 100.0 }
    fused = "#{backend}: map, select, reduce in a chain"
    separate = "#{backend}: map, select, reduce one after the other"
    total = chain.reduce { |a, b| a + b }
    maximum = lambda do
      @floats.pmap(backend: backend) { |x| x * 0.999 }.pselect(backend: backend) { |x| x > 100.0 }.preduce(backend: backend) { |a, b| a > b ? a : b }
    end
    @bench.same(fused, maximum.call, chain.reduce { |a, b| a > b ? a : b })
    @bench.same(separate, true, (total - chain.sum).abs <= 1e-9 * total.abs)
    kernel(fused) { chain.reduce { |a, b| a > b ? a : b } }
    kernel(separate, &maximum)
    @bench.time(fused, runs: @runs) { chain.reduce { |a, b| a > b ? a : b } }
    @bench.time(separate, runs: @runs) { maximum.call }
  end

  # Median seconds of the kernels alone.
  def kernel(name, &work)
    work.call
    @bench.timed("#{name}: kernel", Array.new(@runs) { Ikra.profile(&work).phases.fetch(:kernel) }).median
  end

  def separately(backend, length, list)
    length.times { list = list.pmap(backend: backend) { |x| x * 0.999 + 0.5 } }
    list
  end

  def one_block(length)
    eval("proc { |x| #{"x = x * 0.999 + 0.5; " * length}x }", binding, __FILE__, __LINE__)
  end
end

OperationsBenchmark.new.run if $PROGRAM_NAME == __FILE__
