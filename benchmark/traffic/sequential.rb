# frozen_string_literal: true

# Plain Ruby over the first actors of benchmark/traffic.rb's population, in a process of its own: without Ikra, with YJIT where there is one.
#
#   ruby --yjit benchmark/traffic/sequential.rb ACTORS TICKS STREETS STATE
#
# Writes the actors' final columns to the file STATE and prints {"seconds": …, "yjit": true}.

require "json"
require_relative "columns"

count, ticks, streets = ARGV.first(3).map { |argument| Integer(argument) }
network = Traffic::Network.grid(streets)
actors = Traffic::Population.new(network, deterministic: true).actors(count)
weather = Traffic::Weather::Rainy

actors.first(100).map(&:dup).each { |actor| 2_000.times { actor.move(weather) } } # lets YJIT compile
GC.start
started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
ticks.times { actors.each { |actor| actor.move(weather) } }
seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started

File.binwrite(ARGV.fetch(3), TrafficColumns.new(network, actors).state)
puts JSON.generate(seconds: seconds, yjit: defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? true : false)
