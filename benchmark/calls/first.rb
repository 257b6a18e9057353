# frozen_string_literal: true

# The first call of each of several blocks in a fresh process, in seconds. Loading Ruby and Ikra is not counted.
#
#   ruby -Ilib benchmark/calls/first.rb BACKEND BLOCKS
#
# BLOCKS is a file that defines BLOCKS: an Array of Procs. Each takes an Array and a backend's name, and returns what
# +pmap+ gives.

require "json"
require "ikra"

backend = ARGV.fetch(0).to_sym
load ARGV.fetch(1)
numbers = Array.new(1_000) { |index| index }

seconds = BLOCKS.map do |block|
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  result = block.call(numbers, backend)
  ended = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  abort "first.rb: #{backend} gives another result than map" unless result == block.call(numbers, nil)
  ended - started
end
puts JSON.generate(first: seconds.first, others: seconds.drop(1))
