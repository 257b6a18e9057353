# frozen_string_literal: true

class Program::Mandelbrot
  def outputs(_state, result) = { steps: result.to_a.flatten(1) }

  def compute((width, left, top, step))
    Ikra::MDArray.new(width, width) do |row, column|
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
