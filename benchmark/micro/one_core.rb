# frozen_string_literal: true

# The time that one core needs to bring Ruby's objects into columns and back, and the memory that it takes.
#
#   taskset --cpu-list 0 ruby -Ilib benchmark/micro/one_core.rb ACTORS STREETS TICKS ORDER
#
# ORDER is "allocated" or "shuffled": whether the actors' array has the order of Ruby's heap. The actors are those that
# use +rand+, so exactly two ivars of each are written, @progress and @street. Prints the phases of a warm call, the
# peak of memory beyond Ruby's own, and the bytes of the columns.

require "json"
require "ikra"
require_relative "../../examples/traffic/model"

def memory(key)
  File.read("/proc/self/status")[/^#{key}:\s*(\d+) kB/, 1].to_i * 1024
end

def peak_memory
  GC.start
  File.write("/proc/self/clear_refs", "5") # starts VmHWM anew
  before = memory("VmRSS")
  yield
  memory("VmHWM") - before
rescue SystemCallError
  yield
  nil
end

# Bytes of the columns that the simulation touches, with ids of 4 bytes.
def columns(network, actors)
  vehicles = actors.count { |actor| actor.is_a?(Traffic::Vehicle) }
  ways = network.streets.sum { |street| street.neighbors.size + street.roads.size }
  actors.size * (8 + 4) + vehicles * 8 + network.streets.size * (8 + 8 + 2 * (4 + 4)) + ways * 4
end

count, streets, ticks = ARGV.first(3).map { |argument| Integer(argument) }
network = Traffic::Network.grid(streets)
actors = Traffic::Population.new(network).actors(count)
actors.shuffle!(random: Random.new(1)) if ARGV.fetch(3) == "shuffled"
weather = Traffic::Weather::Rainy

simulate = ->(some, times) { Ikra.profile { some.peach(times, backend: :cpu) { |actor| actor.move(weather) } } }
simulate.call(actors.first(100), 1)
peak = peak_memory { simulate.call(actors, ticks) }
phases = Array.new(3) { simulate.call(actors, ticks).phases }
medians = phases.first.keys.to_h { |phase| [phase, phases.map { |each| each.fetch(phase, 0.0) }.sort[1]] }
puts JSON.generate(phases: medians, peak: peak, columns: columns(network, actors))
