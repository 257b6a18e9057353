# frozen_string_literal: true

# Many simulations at once, from Ruby to Ruby: warm calls one after the other, compared with Ikra.concurrently, with the
# same without planning, and with a thread for each. Then the same where columns stay, in Ikra.resident, compared with
# CUDA by hand. Then what one section costs, compared with a plain call.
#
#   ruby -Ilib benchmark/concurrency.rb      # IKRA_BENCH_BACKENDS=cpu,cuda

# Sections that share one of CUDA's connections to the device wait for each other. By default there are 8.
ENV["CUDA_DEVICE_MAX_CONNECTIONS"] ||= "32"

require "ikra"
require "json"
require "tmpdir"
require_relative "harness"

class ConcurrencyBenchmark
  # A star that all stars of its world attract.
  class Star
    attr_accessor :x, :y, :u, :v, :m

    def initialize(random)
      @x = random.rand
      @y = random.rand
      @u = @v = 0.0
      @m = random.rand
    end

    def attract(stars, dt)
      ax = ay = 0.0
      stars.each do |other|
        dx = other.x - @x
        dy = other.y - @y
        near = (dx * dx) + (dy * dy) + 0.01
        force = other.m / (near * Math.sqrt(near))
        ax += dx * force
        ay += dy * force
      end
      @u += ax * dt
      @v += ay * dt
    end

    def move(dt)
      @x += @u * dt
      @y += @v * dt
    end

    def to_a = [@x, @y, @u, @v]
  end

  WORLDS = 16
  STEPS = 10

  def initialize
    @bench = Harness.new("concurrency")
  end

  def run
    [["316", 316, 8], ["1000", 1000, 9], ["4000", 4000, 10]].each { |name, count, tiny| simulations(name, @bench.size(:"stars_#{name}", count, tiny: tiny)) }
    @bench.backends.each { |backend| one_section(backend) }
    @bench.finish
  end

  private

  BY_HAND = File.expand_path("concurrency/by_hand.cu", __dir__)

  # The best of three ways by hand to run all worlds at once, compared with Ikra's in a scope.
  def by_hand(name, count, seconds)
    Dir.mktmpdir do |directory|
      built = File.join(directory, "by_hand")
      unless @bench.build(built, [BY_HAND], "nvcc", "-O3", "--fmad=false", "-arch=native", BY_HAND, "-o", built)
        next @bench.note("nvcc is not installed: CUDA by hand was not measured")
      end

      times = JSON.parse(IO.popen([built, count.to_s, STEPS.to_s], &:read))
      times.each { |way, taken| @bench.value("#{name} stars by hand, #{way}", taken, "µs") }
      best = times.except("in turn").values.min
      @bench.value("#{name} stars by hand: in turn against the best", times["in turn"] / best, "×")
      @bench.value("#{name} stars, resident: the best by hand against concurrently", best / (seconds["concurrently"] * 1e6), "×")
      @bench.value("#{name} stars, resident: in turn against the best by hand", seconds["in turn"] * 1e6 / best, "×")
    end
  end

  # So many calls are measured together.
  CALLS = 1000

  def one_section(backend)
    calls = @bench.size(:calls, CALLS, tiny: 2)
    ways = {
      "a plain call" => ->(stars) { stars.peach(backend: backend) { |s| s.move(0.001) } },
      "async" => ->(stars) { stars.async.peach(backend: backend) { |s| s.move(0.001) }.value },
      "concurrently" => ->(stars) { Ikra.concurrently { stars.peach(backend: backend) { |s| s.move(0.001) } } }
    }
    found = ways.transform_values { |way| make(5).first.tap { |stars| 2.times { way.call(stars) } }.map(&:to_a) }
    ways.each do |label, way|
      name = "5 stars, #{label}: #{backend}"
      @bench.same(name, found["a plain call"], found[label])
      stars = make(5).first
      @bench.value("#{name}, one call", @bench.time(name, runs: 5) { calls.times { way.call(stars) } }.median / calls * 1e6, "µs")
    end
  end

  def simulations(name, count)
    @bench.backends.each do |backend|
      ways = { "in turn" => method(:in_turn), "concurrently" => method(:concurrently), "plain" => method(:plain), "threads" => method(:threads) }
      found = ways.transform_values do |way|
        worlds = make(count)
        way.call(worlds, backend)
        worlds.flatten.flat_map(&:to_a)
      end
      ways.each_key { |way| @bench.same("#{name} stars, #{way}: #{backend}", found["in turn"], found[way]) }
      times = ways.to_h do |label, way|
        worlds = make(count)
        [label, @bench.time("#{name} stars, #{label}: #{backend}", runs: 5) { way.call(worlds, backend) }.median]
      end
      times.drop(1).each { |label, time| @bench.value("#{name} stars, #{backend}: in turn against #{label}", times["in turn"] / time, "×") }
      resident(name, count, ways.slice("in turn", "concurrently", "plain"), found["in turn"], backend)
    end
  end

  def resident(name, count, ways, expected, backend)
    times = ways.to_h do |label, way|
      worlds = make(count)
      Ikra.resident(arrays: :fixed) { way.call(worlds, backend) }
      @bench.same("#{name} stars, resident, #{label}: #{backend}", expected, worlds.flatten.flat_map(&:to_a))
      Ikra.resident(arrays: :fixed) do
        2.times { way.call(worlds, backend) }
        [label, @bench.time("#{name} stars, resident, #{label}: #{backend}", runs: 5) { way.call(worlds, backend) }.median]
      end
    end
    times.drop(1).each { |label, time| @bench.value("#{name} stars, resident, #{backend}: in turn against #{label}", times["in turn"] / time, "×") }
    by_hand(name, count, times) if backend == :cuda
  end

  def make(count)
    random = Random.new(1)
    Array.new(WORLDS) { Array.new(count) { Star.new(random) } }
  end

  def in_turn(worlds, backend)
    worlds.each { |stars| stars.peach(2 * STEPS, backend: backend) { |s| Ikra.tick.even? ? s.attract(stars, 0.001) : s.move(0.001) } }
  end

  def plain(worlds, backend) = concurrently(worlds, backend, policy: :plain)

  def concurrently(worlds, backend, policy: :auto)
    Ikra.concurrently(policy: policy) do
      worlds.each { |stars| stars.peach(2 * STEPS, backend: backend) { |s| Ikra.tick.even? ? s.attract(stars, 0.001) : s.move(0.001) } }
    end
  end

  def threads(worlds, backend)
    worlds.map do |stars|
      Thread.new { stars.peach(2 * STEPS, backend: backend) { |s| Ikra.tick.even? ? s.attract(stars, 0.001) : s.move(0.001) } }
    end.each(&:join)
  end
end

ConcurrencyBenchmark.new.run if $PROGRAM_NAME == __FILE__
