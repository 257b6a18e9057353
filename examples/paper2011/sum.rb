# frozen_string_literal: true

# Figure 5 of "GPGPU in Ruby with array iterators" (Nishiguchi and Masuhara, 2011): the sum of random numbers.
#
#   ruby -Ilib examples/paper2011/sum.rb [millions]

require_relative "MDarray"

module PaperSum
  def self.run(size)
    array = MDarray.new(size) { |_i| rand }
    array.inject(0.0) { |x, y| x + y }
  end
end

if $PROGRAM_NAME == __FILE__
  (ARGV.empty? ? [4, 16] : ARGV.map { |argument| Integer(argument) }).each do |millions|
    size = millions * 1024 * 1024
    array = MDarray.new(size) { |_i| rand }
    array.inject(0.0) { |x, y| x + y }
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    sum = array.inject(0.0) { |x, y| x + y }
    seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    puts format("%3d Mi numbers: mean %.6f, sum in %.4f s, %.1f GB/s", millions, sum / size, seconds, size * 8 / seconds / 1e9)
  end
end
