# frozen_string_literal: true

# Sums, scans, selections, sorts and dot products of existing arrays, compared with the alternatives
# (operations/beside.rb). Also a tally of a Ruby Array, for which the alternatives use an array of their own. A stencil
# (Himeno's) and a product of matrices are compared with C, CUDA by hand and Python's libraries (programs.rb).
#
# The costs of a chain of +plazy+ are measured, too:
#
# * chains of 1, 10 and 100 maps that are one kernel, compared with the one block that does all their arithmetic, and
#   with the same maps one after the other;
# * a reduction that is a part of the kernel before it;
# * sums of expressions over arrays on the device, with and without an array in between;
# * the time until the sum of a few numbers on the device is in Ruby;
# * and warm calls that have nearly nothing to do.
#
# Kernel times are those of Ikra's profile. The others are from Ruby to Ruby, and mostly pack Floats and make new ones.
#
#   ruby -Ilib benchmark/operations.rb     # ELEMENTS=, WIDE=, RUNS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "operations/beside"
require_relative "suite/suite"

class OperationsBenchmark
  LENGTHS = [1, 10, 100].freeze

  def initialize
    @bench = Harness.new("operations")
    @elements = @bench.size(:elements, 4_000_000, tiny: 1_000)
    @wide = @bench.size(:wide, 16 << 20, tiny: 20_000)
    @runs = @bench.size(:runs, 7, tiny: 1)
    @floats = Array.new(@elements) { |index| index / 7.0 }
    @beside = Beside.new(@bench, @runs)
    Ikra.srand(@bench.seed)
  end

  def run
    @bench.backends.each do |backend|
      # Operators take no options.
      Ikra.configure { |config| config.backend = backend }
      cases.each { |work| @beside.measure(backend, work, @wide) }
      LENGTHS.each { |length| maps(backend, length) }
      reduction(backend)
      sums(backend)
      latency(backend)
      host_time(backend)
      blocks(backend)
    end
    in_ruby
    programs
    @bench.finish
  end

  private

  def cases
    floats = ->(n) { [Ikra::MDArray.rand(n)] }
    arrays = Hash.new { |known, array| known[array] = array.to_a }.compare_by_identity
    tallied = ->(counts) { Array.new(256) { |kind| counts.fetch(kind, 0) } }
    @cases ||= [
      Beside::Case.new(name: "sum", inputs: floats, ikra: ->(x) { x.sum }, ruby: ->(x) { x.sum }, loose: true),
      Beside::Case.new(name: "scan", inputs: floats, ikra: ->(x) { x.cumsum }, ruby: ->(x) { sum = 0.0; x.map { |e| sum += e } }, loose: true),
      Beside::Case.new(name: "select", inputs: floats, ikra: ->(x) { x.select { |e| e > 0.5 } }, ruby: ->(x) { x.select { |e| e > 0.5 } }),
      Beside::Case.new(name: "sort", inputs: floats, ikra: ->(x) { x.sort }, ruby: ->(x) { x.sort }),
      Beside::Case.new(name: "dot", inputs: ->(n) { floats.call(n) + floats.call(n) }, ikra: ->(x, y) { (x * y).sum },
                       ruby: ->(x, y) { x.zip(y).sum { |one, other| one * other } }, loose: true),
      Beside::Case.new(name: "tally", inputs: ->(n) { [(Ikra::MDArray.rand(n) * 256.0).to(:i64)] }, ikra: ->(x) { tallied.call(arrays[x].ptally) },
                       ruby: ->(x) { tallied.call(x.tally) })
    ]
  end

  # The same in plain Ruby, for a sixteenth of the elements.
  def in_ruby
    cases.each do |work|
      name = "ruby: #{work.name}, of a sixteenth"
      inputs = work.inputs.call([@wide / 16, 1].max).map(&:to_a)
      @bench.incomparable(name, "the others are compared with it")
      @bench.time(name, runs: 3) { work.ruby.call(*inputs) }
    end
  end

  # Himeno's size M, and matrices.
  def programs
    suite = Suite.new(@bench)
    { "himeno" => [128, 8], "matmul" => [1024, 16] }.each do |name, (size, tiny)|
      @bench.record("programs", name, suite.measure(name, @bench.size(:"#{name}", size, tiny: tiny), runs: [@runs, 3].min))
    end
    abort "\nOther results:\n  #{suite.failed.join("\n  ")}" unless suite.failed.empty?
  end

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

  # (a * 2 + b).sum in one kernel, with an array in between, and the least time to read one of the arrays.
  def sums(backend)
    a, b = Array.new(2) { |k| on(backend, @wide) { |i| i * 0.25 + k } }
    fused = "#{backend}: (a * 2 + b).sum"
    apart = "#{backend}: (a * 2 + b).sync.sum"
    alone = "#{backend}: a.sum"
    sum = ->(array) { array.sum(backend: backend) }
    by_itself = -> { (a * 2 + b).sync }
    @bench.same(fused, sum.call(by_itself.call), sum.call(a * 2 + b))
    @bench.same(apart, sum.call(by_itself.call), sum.call(a * 2 + b))
    @bench.same(alone, true, (sum.call(a) - (0.25 * @wide * (@wide - 1) / 2)).abs < 1)
    one = @bench.time(fused, runs: @runs, warmup: 3) { sum.call(a * 2 + b) }
    other = @bench.time(apart, runs: @runs, warmup: 3) { sum.call(by_itself.call) }
    least = @bench.time(alone, runs: @runs, warmup: 3) { sum.call(a) }
    @bench.value("#{fused}, against an array in between", other.median / one.median, "times as fast")
    @bench.value("#{fused}, against reading two arrays", 2 * least.median / one.median, "")
  end

  CALLS = 1_000

  # The time until the reduction of 1000 numbers is in Ruby, averaged over many calls.
  def latency(backend)
    a, b = Array.new(2) { on(backend, 1_000) { |i| i * 0.5 } }
    reductions = { "a.sum" => -> { a.sum(backend: backend) }, "a.max" => -> { a.max(backend: backend) }, "(a * 2 + b).sum" => -> { (a * 2 + b).sum(backend: backend) } }
    reductions.each do |name, work|
      label = "#{backend}: #{name} of 1000, #{CALLS} calls"
      @bench.same(label, { "a.sum" => 249_750.0, "a.max" => 499.5, "(a * 2 + b).sum" => 749_250.0 }.fetch(name), work.call)
      each = @bench.time(label, runs: @runs, warmup: 2) { CALLS.times { work.call } }.median / CALLS * 1e6
      @bench.value("#{label}: each", each, "µs")
      @bench.target("#{backend}: warm #{name} on the device", each, unit: "µs", at_most: 15) if name == "a.sum" && backend == :cuda
    end
  end

  # The number of calls between two waits. A GPU's queue has room for them.
  QUEUED = 100

  # Calls over 16 existing numbers, until they return: all costs but the work itself. Calls that are queued on a GPU are
  # not waited for. Some calls are followed by a wait that is not timed, because otherwise Ruby would wait for the
  # kernels.
  def host_time(backend)
    array = on(backend, 16) { |i| i * 0.5 }
    list, scale = array.to_a, 2.0
    calls = {
      "map" => -> { array.map { |x| x * 2.0 } }, "map, a captured number" => -> { array.map { |x| x * scale } }, "map!" => -> { array.map! { |x| x * 1.0 } },
      "pmap" => -> { list.pmap { |x| x * 2.0 } }, "pmap, a captured number" => -> { list.pmap { |x| x * scale } }
    }
    calls.each do |name, work|
      label = "#{backend}: #{name} of 16, #{CALLS} calls"
      @bench.same(label, list.map { |x| name == "map!" ? x : x * 2.0 }, work.call.to_a)
      each = @bench.timed(label, Array.new(3 * @runs + 2) { host_seconds(&work) }.drop(2)).median / CALLS * 1e6
      @bench.value("#{label}: each", each, "µs")
      # Calls of pmap are waited for.
      @bench.target("#{backend}: warm #{name}", each, unit: "µs", at_most: 5) if backend == :cpu || (backend == :cuda && name.start_with?("map"))
    end
  end

  # Seconds of so many calls, without waiting for queued work.
  def host_seconds
    GC.start
    (CALLS / QUEUED).times.sum do
      began = clock
      (QUEUED - 1).times { yield }
      last = yield
      (clock - began).tap { last.sync if last.is_a?(Ikra::MDArray) }
    end
  end

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # A block's values, added, counted and compared by the kernel, and the same after an Array of them was made.
  def blocks(backend)
    fused = "#{backend}: psum { }"
    apart = "#{backend}: pmap { }.sum"
    @bench.same(fused, true, (@floats.psum(backend: backend) { |x| x * 0.5 } - @floats.sum * 0.5).abs <= 1e-12 * @floats.sum)
    @bench.incomparable(apart, "the order of the additions is another")
    @bench.same("#{backend}: pcount { }", @floats.count { |x| x > 77.5 }, @floats.pcount(backend: backend) { |x| x > 77.5 })
    @bench.same("#{backend}: pmin_by { }", @floats.min_by { |x| (x - 77.5).abs }, @floats.pmin_by(backend: backend) { |x| (x - 77.5).abs })
    @bench.time(fused, runs: @runs) { @floats.psum(backend: backend) { |x| x * 0.5 } }
    @bench.time(apart, runs: @runs) { @floats.pmap(backend: backend) { |x| x * 0.5 }.sum }
    @bench.time("#{backend}: pcount { }", runs: @runs) { @floats.pcount(backend: backend) { |x| x > 77.5 } }
    @bench.time("#{backend}: pmin_by { }", runs: @runs) { @floats.pmin_by(backend: backend) { |x| (x - 77.5).abs } }
  end

  # An array whose elements a backend has computed.
  def on(backend, size, &block) = Ikra::MDArray.new(size, backend: backend, &block).sync

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
