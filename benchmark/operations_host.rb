# frozen_string_literal: true

# Host time of warm calls: every operation of MDArray and every p-method on few elements, beside plain Ruby, NumPy and,
# where there is a GPU, CuPy (operations_host/peers.py), in one run.
#
# On the CPU the whole call is measured, from Ruby to the computed elements. On a GPU the time ends when the call
# returns. Not measured: the first calls, which compile. A time is the best of several, each the mean of many calls.
#
# The goals are for 10 elements, where computing takes no time: microseconds beyond those of `map`, and for p-methods
# beyond those of `pmap` on the CPU.
#
#   ruby -Ilib benchmark/operations_host.rb     # SIZES=10,1000,100000 CALLS=200 in the environment;
#                                               # IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "harness"

class OperationsHostBenchmark
  PEERS = { cpu: "numpy", cuda: "cupy" }.freeze
  PYTHON = File.expand_path("operations_host/peers.py", __dir__)
  REPEATS = 5
  # Microseconds beyond `map` for an operation that launches one kernel, and for one of two fused operators; beyond
  # `pmap` for p-methods and chains.
  ONE, FUSED, PARALLEL = 6, 8, 10
  # Microseconds of an element, and of a sweep of Himeno.
  ELEMENT, SWEEP = 1, 60
  AROUND = [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]].freeze

  # An operation. +beyond+: the microseconds that it may take beyond those of the baseline. +ruby+: the same in plain
  # Ruby.
  Case = Struct.new(:name, :ikra, :ruby, :beyond, keyword_init: true)

  def initialize
    @bench = Harness.new("operations_host")
    sizes = ENV.fetch("SIZES", @bench.tiny? ? "10" : "10,1000,100000")
    @sizes = sizes.split(",").map { |size| Integer(size) }
    @calls = @bench.size(:calls, 200, tiny: 1)
  end

  def run
    @bench.backends.each do |backend|
      Ikra.config.backend = backend
      peers = ask(backend)
      @sizes.each { |size| measure(backend, size, peers) }
    end
    @bench.finish
  end

  private

  def measure(backend, size, peers)
    [[arrays(size), "map"], [lists(size), "pmap"]].each do |cases, baseline|
      next if baseline == "pmap" && backend != :cpu

      least = nil
      cases.each do |work|
        name = "#{backend}: #{work.name}, #{size}"
        compare(name, work)
        seconds = @bench.timed(name, best(work.ikra)).median
        least ||= seconds
        @bench.timed("#{name}: ruby", best(work.ruby, size)) if work.ruby
        peer = peers.dig(work.name.to_sym, size.to_s.to_sym)
        @bench.timed("#{name}: #{PEERS.fetch(backend)}", [peer]) if peer
        goal(name, work, baseline, (seconds - least) * 1e6) if work.beyond && size == @sizes.min
      end
    end
    himeno(backend, size)
  end

  def goal(name, work, baseline, beyond)
    @bench.target("#{name}: µs beyond #{baseline}", beyond, unit: "µs", at_most: work.beyond)
  end

  # The mean of many calls, so many times.
  def best(work, size = 0)
    calls = size > 1_000 ? [@calls / 100, 1].max : @calls
    3.times { work.call }
    GC.start
    seconds = Array.new(@bench.tiny? ? 1 : REPEATS) do
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      calls.times { work.call }
      (Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) / calls
    end
    [seconds.min]
  end

  def compare(name, work)
    return @bench.incomparable(name, "plain Ruby has no such operation") unless work.ruby

    ours, theirs = [work.ikra, work.ruby].map { |call| [plain(call.call)].flatten }
    near = ours.size == theirs.size && ours.zip(theirs).all? { |one, other| one == other || (one - other).abs <= 1e-9 * [one.abs, 1.0].max }
    @bench.same(name, true, near)
  end

  def plain(result) = result.is_a?(Ikra::MDArray) ? result.to_a : result.is_a?(Hash) ? result.to_a : result

  # The times of the other library, by operation and size.
  def ask(backend)
    library = PEERS[backend]
    return {} unless library && @bench.python

    said = IO.popen([@bench.python, PYTHON, library, @calls.to_s, *@sizes.map(&:to_s)], err: File::NULL, &:read).lines.last
    answer = said ? JSON.parse(said, symbolize_names: true) : { missing: "it failed" }
    @bench.note("#{backend}: #{library} is not measured: #{answer[:missing]}") if answer[:missing]
    answer.fetch(:seconds, {})
  end

  # Operations of MDArray. The first one is the baseline.
  def arrays(size)
    list = Array.new(size) { |i| i * 0.5 }
    x = Ikra::MDArray.new(list)
    rows = list.each_slice(10).to_a
    y, row = Ikra::MDArray.new(rows), Ikra::MDArray.new(Array.new(10) { |i| i.to_f })
    few, many = Ikra::MDArray.ones(30, 30), Ikra::MDArray.ones(30, 33)
    [
      one("x.map", ruby: -> { list.map { |v| v + 1.0 } }) { x.map { |v| v + 1.0 } },
      one("x * 2.5", ruby: -> { list.map { |v| v * 2.5 } }) { done(x * 2.5) },
      one("x * 2.5 + x * x", FUSED, ruby: -> { list.map { |v| v * 2.5 + v * v } }) { done(x * 2.5 + x * x) },
      one("x.sqrt", ruby: -> { list.map { |v| Math.sqrt(v) } }) { done(x.sqrt) },
      one("x.to(:f32)") { done(x.to(:f32)) },
      one("x.sum", ruby: -> { list.sum }) { x.sum },
      one("(x * x).sum", ruby: -> { list.sum { |v| v * v } }) { (x * x).sum },
      one("x.max", ruby: -> { list.max }) { x.max },
      one("x.sum { }", ruby: -> { list.sum { |v| v * v } }) { x.sum { |v| v * v } },
      one("x.count { }", ruby: -> { list.count { |v| v > 3.0 } }) { x.count { |v| v > 3.0 } },
      one("x.any? { }") { x.any? { |v| v > 3.0 } },
      one("x.inject { }") { x.inject { |a, b| a > b ? a : b } },
      one("x.select { }", nil, ruby: -> { list.select { |v| v > 3.0 } }) { x.select { |v| v > 3.0 } },
      one("x[x > 3.0]", nil, ruby: -> { list.select { |v| v > 3.0 } }) { x[x > 3.0] },
      one("x.combine(x) { }", ruby: -> { list.zip(list).map { |a, b| a + b } }) { done(x.combine(x) { |a, b| a + b }) },
      one("x.map_with_index { }", ruby: -> { list.each_with_index.map { |v, i| v + i } }) { done(x.map_with_index { |v, i| v + i }) },
      one("x.stencil { |a, b, c| }") { done(x.stencil([-1, 0, 1], 0.0) { |a, b, c| a + b + c }) },
      one("x.stencil { |v| }", nil) { done(x.stencil([-1, 0, 1], 0.0) { |v| v[-1] + v[0] + v[1] }) },
      one("y + row", ruby: -> { rows.map { |r| r.each_with_index.map { |v, i| v + i } } }) { done(y + row) },
      one("y.t + y.t") { done(y.t + y.t) },
      one("y.sum(axis: 0)", ruby: -> { rows.transpose.map(&:sum) }) { done(y.sum(axis: 0)) },
      one("y[0..0, true].max(axis: 1)", nil, ruby: -> { [rows[0].max] }) { done(y[0..0, true].max(axis: 1)) },
      one("y.argmax(axis: 0)", nil) { done(y.argmax(axis: 0)) },
      one("x.cumsum", nil) { done(x.cumsum) },
      one("x.sort", nil, ruby: -> { list.sort }) { done(x.sort) },
      one("matmul 30 x 33", nil) { done(few.matmul(many)) },
      one("x[5]", nil, ruby: -> { list[5] }) { x[5] }
    ]
  end

  # The p-methods and chains. The first one is the baseline.
  def lists(size)
    list = Array.new(size) { |i| i }
    [
      parallel("pmap", -> { list.map { |v| v + 1 } }) { list.pmap { |v| v + 1 } },
      parallel("pselect", -> { list.select { |v| v > 3 } }) { list.pselect { |v| v > 3 } },
      parallel("pcount", -> { list.count { |v| v > 3 } }) { list.pcount { |v| v > 3 } },
      parallel("psum", -> { list.sum { |v| v * 2 } }) { list.psum { |v| v * 2 } },
      parallel("preduce", -> { list.reduce { |a, b| a > b ? a : b } }) { list.preduce { |a, b| a > b ? a : b } },
      parallel("psort_by", -> { list.sort_by { |v| -v } }) { list.psort_by { |v| -v } },
      parallel("pmin_by", -> { list.min_by { |v| -v } }) { list.pmin_by { |v| -v } },
      parallel("pgroup_by", -> { list.group_by { |v| v % 7 } }) { list.pgroup_by { |v| v % 7 } },
      parallel("pfind", -> { list.find { |v| v > 5 } }) { list.pfind { |v| v > 5 } },
      parallel("pstencil", nil) { list.pstencil([-1, 0, 1], 0) { |a, b, c| a + b + c } },
      parallel("plazy.map.map", -> { list.map { |v| (v + 1) * 2 } }) { list.plazy.map { |v| v + 1 }.map { |v| v * 2 }.to_a },
      parallel("plazy.map.select", -> { list.map { |v| v + 1 }.select { |v| v > 3 } }) { list.plazy.map { |v| v + 1 }.select { |v| v > 3 }.to_a },
      parallel("plazy.map.sum", -> { list.sum { |v| v + 1 } }) { list.plazy.map { |v| v + 1 }.sum }
    ]
  end

  # A sweep over a small grid: a stencil, a fused sum, and two fused operators.
  def himeno(backend, size)
    return unless size == @sizes.min

    grid = Ikra::MDArray.new(6, 6, 6) { |i, j, k| (i + j + k) * 0.1 }
    name = "#{backend}: a sweep of Himeno"
    @bench.incomparable(name, "programs/himeno is")
    seconds = @bench.timed(name, best(-> { sweep(grid) })).median
    @bench.target("#{name}, µs", seconds * 1e6, unit: "µs", at_most: SWEEP)
  end

  def sweep(p)
    ss = p.stencil(AROUND, 0.0) { |here, a, b, c, d, e, f| (a + b + c + d + e + f) / 6.0 - here }
    (ss * ss).sum
    done(p + ss * 0.8)
  end

  def one(name, beyond = ONE, ruby: nil, &ikra) = Case.new(name: name, ikra: ikra, ruby: ruby, beyond: beyond)

  def parallel(name, ruby, &ikra) = Case.new(name: name, ikra: ikra, ruby: ruby, beyond: PARALLEL)

  # On a GPU nothing waits for the elements.
  def done(array) = array.tap(&:__storage)
end

OperationsHostBenchmark.new.run if $PROGRAM_NAME == __FILE__
