# frozen_string_literal: true

# What it costs to bring Ruby's objects into columns and back: on one core, because the machine has more to do.
#
# - job reordering: over number of objects × number of classes, beside packing the same objects in the order in which they are;
# - the tracer: over number of nodes × edges of each, where the heap has the nodes in the order in which they are found, and where it has them shuffled;
# - packing per ivar, write-back per slot, and the rest of a call: by the slope over the number of ivars and objects;
# - memory: the peak of a call of the traffic simulation against its columns.
#
# Every kernel does next to nothing. The objects' new state is compared with plain Ruby's before anything is timed. Not measured: kernels.
#
#   ruby -Ilib benchmark/micro/objects.rb      # OBJECTS=, NODES=, RUNS=, SEED= in the environment

require "ikra"
require_relative "../harness"

class ObjectsBenchmark
  ONE_CORE = File.expand_path("one_core.rb", __dir__)
  MARSHALLING = File.expand_path("marshalling.rb", __dir__)

  def initialize
    @bench = Harness.new("objects")
    @objects = @bench.size(:objects, 1_000_000, tiny: 200)
    @nodes = @bench.size(:nodes, 1_000_000, tiny: 200)
    @runs = @bench.size(:runs, 5, tiny: 1)
    @seed = @bench.seed
  end

  def run
    reordering
    tracer
    slots
    traffic
    @bench.finish
  end

  private

  def child(*arguments)
    @bench.child(MARSHALLING, *arguments, @runs, @seed, cores: 1)
  end

  def reordering
    powers(1_000, @objects).each do |count|
      [1, 2, 4, 16, 64].each do |classes|
        found = child("reorder", count, classes)
        name = "reordering, #{count} objects of #{classes} classes"
        @bench.incomparable(name, "the process that was timed compares its objects with plain Ruby's")
        time = @bench.timed("#{name}: by class", found[:reordered]).median
        plain = @bench.timed("#{name}: as given", found[:given]).median
        @bench.value("#{name}: for each object", (time - plain) / count * 1e9, "ns")
      end
    end
  end

  def tracer
    powers(10_000, @nodes).each do |count|
      [1, 4, 16].each do |degree|
        next if count * degree > 8 * @nodes

        %w[allocated shuffled].each do |order|
          found = child("trace", count, degree, order)
          name = "tracer, #{count} nodes with #{degree} edges, #{order}"
          @bench.incomparable(name, "the process that was timed compares its objects with plain Ruby's")
          time = @bench.timed(name, found[:trace]).median
          @bench.value("#{name}: million ivars and elements a second", found[:slots] / time / 1e6, "M/s")
        end
      end
    end
  end

  # Straight lines through times over ivars and over objects.
  def slots
    found = [1, 2, 4, 8].to_h { |ivars| [ivars, child("slots", @objects, ivars)] }
    %i[trace pack unpack].each do |phase|
      name = "slots, #{phase}"
      @bench.incomparable(name, "the process that was timed compares its objects with plain Ruby's")
      times = found.to_h { |ivars, run| [ivars, @bench.timed("#{name}: #{@objects} objects of #{ivars} ivars", run[phase]).median] }
      @bench.value("#{name}: for each ivar", (times[8] - times[1]) / 7 / @objects * 1e9, "ns")
      @bench.value("#{name}: for each object beside them", (times[1] - (times[8] - times[1]) / 7) / @objects * 1e9, "ns")
    end
    call = child("slots", 1, 1)
    @bench.incomparable("a call over one object", "the process that was timed compares its objects with plain Ruby's")
    @bench.timed("a call over one object: whole", call[:whole])
  end

  # With actors that use rand, so that exactly two ivars of each are written.
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

  # Powers of ten up to a number, and that number where it is less than all of them.
  def powers(first, last)
    sizes = [first]
    sizes << sizes.last * 10 while sizes.last * 10 <= last
    last < first ? [last] : sizes
  end
end

ObjectsBenchmark.new.run if $PROGRAM_NAME == __FILE__
