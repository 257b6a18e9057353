# frozen_string_literal: true

# What it costs to pack Ruby's objects into columns, and to write them back. One core is measured, because the machine
# may have other work.
#
# - Job reordering, by number of objects and of classes, compared with packing the same objects in their own order.
# - The tracer, by number of nodes and of their edges. The heap has the nodes in the order in which they are found, or
#   shuffled. New graphs are traced, and the same ones revalidated. Both are also measured on several cores.
# - Packing per ivar, write-back per slot, and the rest of a call, by the slope over the number of ivars and objects.
# - Arrays of Floats and Integers that become columns.
# - Memory: the peak of a call of the traffic simulation, compared with its columns.
#
# Every kernel does next to nothing. The objects' new state is compared with plain Ruby's before anything is timed. Not
# measured: kernels.
#
#   ruby -Ilib benchmark/micro/objects.rb   # OBJECTS=, NODES=, ELEMENTS=, RUNS=, SEED= in the environment

require "ikra"
require_relative "../harness"

class ObjectsBenchmark
  ONE_CORE = File.expand_path("one_core.rb", __dir__)
  MARSHALLING = File.expand_path("marshalling.rb", __dir__)

  def initialize
    @bench = Harness.new("objects")
    @objects = @bench.size(:objects, 1_000_000, tiny: 200)
    @nodes = @bench.size(:nodes, 1_000_000, tiny: 200)
    @elements = @bench.size(:elements, 8_000_000, tiny: 1_000)
    @runs = @bench.size(:runs, 5, tiny: 1)
    @seed = @bench.seed
  end

  def run
    reordering
    tracer
    over_cores
    slots
    arrays
    traffic
    @bench.finish
  end

  private

  COMPARED = "the process that was timed compares its objects with plain Ruby's"
  # The least measurable seconds for an item. Where two measurements differ by less, or in the wrong direction, this is
  # taken.
  MIN_SECONDS = 1e-10
  # The promised rates of a core, in million ivars and elements a second. "allocated": the heap has the objects in the
  # order in which they are found; "shuffled": it does not.
  WANTED = { "allocated" => 100, "shuffled" => 30 }.freeze

  def child(*arguments, cores: 1)
    @bench.child(MARSHALLING, *arguments, @runs, @seed, cores: cores)
  end

  def reordering
    counts = powers(1_000, @objects)
    rates = counts.product([1, 2, 4, 16, 64]).to_h { |count, classes| [[count, classes], reordered(count, classes)] }
    worst = rates.select { |(count, classes), _| count == counts.last && classes > 1 }.min_by(&:last)
    @bench.target("reordering #{counts.last} objects, million a second, the least of 2 to 64 classes (#{worst.first.last})", worst.last, unit: "M/s", at_least: 400)
  end

  # Adds a row in millions a second.
  def reordered(count, classes)
    found = child("reorder", count, classes)
    name = "reordering, #{count} objects of #{classes} classes"
    @bench.incomparable(name, COMPARED)
    @bench.timed("#{name}: by class", found[:reordered])
    @bench.timed("#{name}: as given", found[:given])
    # Each time is compared with the one measured in the same turn.
    beyond = Harness::Timing.new(found[:reordered].zip(found[:given]).map { |time, plain| time - plain }).median
    @bench.value("#{name}: for each object", beyond / count * 1e9, "ns")
    1 / [beyond / count, MIN_SECONDS].max / 1e6
  end

  def tracer
    counts = powers(10_000, @nodes)
    counts.product([1, 4, 16], WANTED.keys).each do |count, degree, order|
      next if count * degree > 8 * @nodes

      rate = traced(count, degree, order)["tracer"]
      next unless count == counts.last

      @bench.target("tracer, #{count} nodes with #{degree} edges, #{order}, on one core", rate, unit: "M/s", at_least: WANTED.fetch(order))
    end
  end

  # The rates of the tracer, and of revalidation, in million ivars and elements a second.
  def traced(count, degree, order, cores: 1, prefix: "")
    found = child("trace", count, degree, order, cores: cores)
    { "tracer" => :trace, "check" => :again }.to_h do |what, phase|
      name = "#{prefix}#{what}, #{count} nodes with #{degree} edges, #{order}"
      @bench.incomparable(name, COMPARED)
      [what, @bench.value("#{name}: million ivars and elements a second", found[:slots] / @bench.timed(name, found[phase]).median / 1e6, "M/s")]
    end
  end

  # On 1, 2, 4, … cores, and on all.
  def over_cores
    return @bench.note("over cores: nothing is measured without taskset") unless @bench.tool?("taskset")

    all = @bench.cpus.size
    WANTED.each_key do |order|
      rates = [*powers(1, all, by: 2), all].uniq.to_h { |cores| [cores, traced(@nodes, 4, order, cores: cores, prefix: "#{cores} cores: ")] }
      %w[tracer check].each do |what|
        rates.drop(1).each { |cores, found| @bench.value("#{what}, #{order}: #{cores} cores against one", found[what] / rates[1][what], "×") }
      end
    end
  end

  # Fits straight lines through times over ivars and over objects.
  def slots
    found = [1, 2, 4, 8].to_h { |ivars| [ivars, child("slots", @objects, ivars)] }
    times = %i[trace pack unpack].to_h { |phase| [phase, slots_of(phase, found)] }
    rates = times[:unpack].map { |ivars, time| ivars * @objects / time / 1e6 }
    @bench.target("write-back, million slots a second, the least of 1 to 8 ivars", rates.min, unit: "M/s", at_least: 20)
    call = child("slots", 1, 1)
    @bench.incomparable("a call over one object", COMPARED)
    @bench.timed("a call over one object: whole", call[:whole])
  end

  # Seconds by number of ivars.
  def slots_of(phase, found)
    name = "slots, #{phase}"
    @bench.incomparable(name, COMPARED)
    times = found.to_h { |ivars, run| [ivars, @bench.timed("#{name}: #{@objects} objects of #{ivars} ivars", run[phase]).median] }
    @bench.value("#{name}: for each ivar", (times[8] - times[1]) / 7 / @objects * 1e9, "ns")
    @bench.value("#{name}: for each object beside them", (times[1] - (times[8] - times[1]) / 7) / @objects * 1e9, "ns")
    times
  end

  def arrays
    %w[float integer].each do |kind|
      name = "an Array of #{@elements} #{kind.capitalize}s, packed"
      @bench.incomparable(name, "the process that was timed compares their sum with plain Ruby's")
      time = @bench.timed(name, child("array", @elements, kind)[:pack]).median
      @bench.target("#{name}, million a second", @elements / time / 1e6, unit: "M/s", at_least: 700)
    end
  end

  # The actors use rand, so that exactly two ivars of each are written.
  def traffic
    actors, streets = @bench.tiny? ? [200, 50] : [@objects, @objects / 10]
    %w[allocated shuffled].each do |order|
      name = "traffic on one core, #{order}"
      result = @bench.child(ONE_CORE, actors, streets, [100, @bench.tiny? ? 2 : 100].min, order, cores: 1)
      @bench.incomparable(name, "benchmark/programs compares the simulation")
      seconds = result[:phases].to_h { |phase, time| [phase, @bench.timed("#{name}: #{phase}", [time]).median] }
      @bench.target("#{name}: trace", seconds.fetch(:trace) * 1e3, unit: "ms", at_most: 150)
      @bench.target("#{name}: write-back of two ivars", seconds.fetch(:unpack) * 1e3, unit: "ms", at_most: 100)
      memory(name, result)
    end
  end

  def memory(name, result)
    return @bench.note("#{name}: peak memory cannot be measured here") unless result[:peak]

    @bench.target("#{name}: peak memory against columns", result[:peak] / result[:columns].to_f, at_most: 2.5)
  end

  # The powers of ten, or of another number, up to +last+; and +last+ itself where it is none of them.
  def powers(first, last, by: 10)
    sizes = [first]
    sizes << sizes.last * by while sizes.last * by <= last
    last < first ? [last] : sizes
  end
end

ObjectsBenchmark.new.run if $PROGRAM_NAME == __FILE__
