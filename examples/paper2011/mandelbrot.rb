# frozen_string_literal: true

# Figure 1 of "GPGPU in Ruby with array iterators" (Nishiguchi and Masuhara, 2011): the number of steps that each point
# takes to escape.
#
#   ruby -Ilib examples/paper2011/mandelbrot.rb [size]

require_relative "MDarray"

module PaperMandelbrot
  # @return [MDarray] for each point the number of steps that it stays
  def self.run(r_size, i_size = r_size, limit = 256)
    inf = 2.0
    r_start, i_start = -2.0, -1.25
    dr, di = 2.5 / r_size, 2.5 / i_size
    MDarray.new(r_size, i_size) do |i, j|
      cr = r_start + i * dr
      ci = i_start + j * di
      zr = 0.0
      zi = 0.0
      iter = 0
      while (iter < limit && ((zr * zr + zi * zi)**0.5) < inf)
        t = zr * zr - zi * zi + cr
        zi = 2.0 * zr * zi + ci
        zr = t
        iter += 1
      end
      iter
    end
  end
end

if $PROGRAM_NAME == __FILE__
  size = Integer(ARGV.first || 2000)
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  result = PaperMandelbrot.run(size).sync
  puts format("%d × %d points: %.3f s", size, size, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
  (result + 1).log.t.heatmap("mandelbrot2011.png")
  puts "Picture: mandelbrot2011.png"
end
