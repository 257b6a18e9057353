# frozen_string_literal: true

# The Mandelbrot set, and how fast the points outside of it escape.
#
#   ruby -Ilib examples/mandelbrot.rb [width]

require_relative "support/comparison"
require_relative "support/png"

module Mandelbrot
  MAX_STEPS = 200

  # The number of steps until the point escapes, with a fraction for smooth colours; nil if it stays.
  def self.escape(real, imaginary)
    x = y = 0.0
    MAX_STEPS.times do |step|
      x, y = x * x - y * y + real, 2 * x * y + imaginary
      length = x * x + y * y
      return step + 2 - Math.log2(Math.log2(length)) if length > 256
    end
    nil
  end

  def self.colour(steps)
    return [0, 0, 0] unless steps

    [0.0, 0.6, 1.2].map { |phase| (127.5 * (1 - Math.cos(phase + steps * 0.15))).round }
  end

  # Rows of pixels, red, green and blue.
  def self.run(width)
    height = width * 2 / 3
    (0...height).pmap do |row|
      (0...width).map do |column|
        colour(escape(-2.2 + 3.2 * column / width, 1.07 - 2.14 * row / height))
      end
    end
  end
end

if $PROGRAM_NAME == __FILE__
  rows = Comparison.run(600) { |width| Mandelbrot.run(width) }
  PNG.write("mandelbrot.png", rows)
end
