# frozen_string_literal: true

class Program::Mandelbrot
  def compute((width, left, top, step))
    (0...width * width).map do |point|
      row, column = point.divmod(width)
      real = left + column * step
      imaginary = top + row * step
      x = y = 0.0
      steps = 0
      while steps < MAX_STEPS && x * x + y * y <= 4.0
        x, y = x * x - y * y + real, 2.0 * x * y + imaginary
        steps += 1
      end
      steps
    end
  end
end
