# frozen_string_literal: true

class Program::Mandelbrot
  phrasing "until, squares in variables, / and %" do
    def compute((width, left, top, step))
      (0...width * width).pmap do |point|
        real = left + (point % width) * step
        imaginary = top + (point / width) * step
        x = y = x2 = y2 = 0.0
        steps = 0
        until steps == MAX_STEPS || x2 + y2 > 4.0
          y = 2.0 * x * y + imaginary
          x = x2 - y2 + real
          x2 = x * x
          y2 = y * y
          steps += 1
        end
        steps
      end
    end
  end

  phrasing "times with break, a temporary" do
    def compute((width, left, top, step))
      (0...width * width).pmap do |point|
        row, column = point.divmod(width)
        x = y = 0.0
        steps = 0
        MAX_STEPS.times do
          break if x * x + y * y > 4.0

          next_x = x * x - y * y + (left + column * step)
          y = 2.0 * x * y + (top + row * step)
          x = next_x
          steps += 1
        end
        steps
      end
    end
  end

  phrasing "loop with two breaks" do
    def compute((width, left, top, step))
      (0...width * width).pmap do |point|
        row, column = point.divmod(width)
        real = left + column * step
        imaginary = top + row * step
        x = y = 0.0
        steps = 0
        loop do
          break if steps >= MAX_STEPS
          break if x * x + y * y > 4.0

          x, y = x * x - y * y + real, 2.0 * x * y + imaginary
          steps += 1
        end
        steps
      end
    end
  end

  phrasing "each over a Range in a method that returns early" do
    def compute((width, left, top, step))
      (0...width * width).pmap { |point| escape(left + (point % width) * step, top + (point / width) * step) }
    end

    def escape(real, imaginary)
      x = y = 0.0
      (0...MAX_STEPS).each do |steps|
        return steps if x * x + y * y > 4.0

        x, y = x * x - y * y + real, 2.0 * x * y + imaginary
      end
      MAX_STEPS
    end
  end

  phrasing "step and a flag" do
    def compute((width, left, top, step))
      (0...width * width).pmap do |point|
        row, column = point.divmod(width)
        real = left + column * step
        imaginary = top + row * step
        x = y = 0.0
        steps = 0
        inside = true
        0.step(MAX_STEPS - 1, 1) do
          inside = false if x * x + y * y > 4.0
          break unless inside

          x, y = x * x - y * y + real, 2.0 * x * y + imaginary
          steps += 1
        end
        steps
      end
    end
  end

  phrasing "find over a Range" do
    def compute((width, left, top, step))
      (0...width * width).pmap do |point|
        row, column = point.divmod(width)
        real = left + column * step
        imaginary = top + row * step
        x = y = 0.0
        found = (0...MAX_STEPS).find do
          outside = x * x + y * y > 4.0
          x, y = x * x - y * y + real, 2.0 * x * y + imaginary
          outside
        end
        found || MAX_STEPS
      end
    end
  end

  phrasing "methods cut small" do
    def compute((width, left, top, step))
      (0...width * width).pmap { |point| steps_of(place(left, point % width, step), place(top, point / width, step)) }
    end

    def place(origin, index, step) = origin + index * step
    def square(number) = number * number
    def norm(x, y) = square(x) + square(y)
    def inside?(steps, x, y) = steps < MAX_STEPS && norm(x, y) <= 4.0
    def following(x, y, real, imaginary) = [square(x) - square(y) + real, 2.0 * x * y + imaginary]

    def steps_of(real, imaginary)
      x = y = 0.0
      steps = 0
      while inside?(steps, x, y)
        x, y = following(x, y, real, imaginary)
        steps += 1
      end
      steps
    end
  end

  phrasing "Complex numbers" do
    def compute((width, left, top, step))
      (0...width * width).pmap do |point|
        c = Complex(left + (point % width) * step, top + (point / width) * step)
        z = Complex(0.0, 0.0)
        steps = 0
        while steps < MAX_STEPS && z.abs2 <= 4.0
          z = z * z + c
          steps += 1
        end
        steps
      end
    end
  end

  # A point that moves itself.
  class Point
    attr_reader :steps
    attr_accessor :x, :y

    def initialize(real, imaginary)
      @real = real
      @imaginary = imaginary
      @x = @y = 0.0
      @steps = 0
    end

    def iterate
      while @steps < MAX_STEPS && @x * @x + @y * @y <= 4.0
        @x, @y = @x * @x - @y * @y + @real, 2.0 * @x * @y + @imaginary
        @steps += 1
      end
    end

    def inside? = x * x + y * y <= 4.0

    def move
      before = x
      self.x = x * x - y * y + @real
      self.y = 2.0 * before * y + @imaginary
    end

    def iterate_by_attributes
      MAX_STEPS.times do
        return unless inside?

        move
        @steps += 1
      end
    end
  end

  # Objects in place of numbers.
  module Points
    def state(input)
      left, top, step = input[:left], input[:top], input[:step]
      Array.new(input[:width]**2) { |point| Point.new(left + (point % input[:width]) * step, top + (point / input[:width]) * step) }
    end

    def changes? = true
    def outputs(points, _result) = { steps: points.map(&:steps) }
  end

  phrasing "objects, while, ivars" do
    include Points

    def compute(points) = points.peach { |point| point.iterate }
  end

  phrasing "objects, times, attributes, methods cut small" do
    include Points

    def compute(points) = points.peach(&:iterate_by_attributes)
  end

  phrasing "nested Arrays" do
    def outputs(_state, result) = { steps: result.flatten(1) }

    def compute((width, left, top, step))
      Array.pnew(width, width) do |row, column|
        x = y = 0.0
        steps = 0
        while steps < MAX_STEPS && x * x + y * y <= 4.0
          x, y = x * x - y * y + (left + column * step), 2.0 * x * y + (top + row * step)
          steps += 1
        end
        steps
      end
    end
  end

  phrasing "MDArray, a ternary" do
    def outputs(_state, result) = { steps: result.to_a.flatten(1) }

    def compute((width, left, top, step))
      Ikra::MDArray.new(width, width) do |row, column|
        real = left + column * step
        imaginary = top + row * step
        x = y = 0.0
        steps = 0
        going = true
        while going
          x, y = x * x - y * y + real, 2.0 * x * y + imaginary
          steps += 1
          going = steps < MAX_STEPS ? x * x + y * y <= 4.0 : false
        end
        steps
      end
    end
  end
end
