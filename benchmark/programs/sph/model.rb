# frozen_string_literal: true

class Program::Sph
  class Cell
    # The particles in it, and the cells around it, which include itself.
    attr_accessor :particles, :around
  end

  class Particle
    attr_reader :x, :y, :vx, :vy, :density, :pressure

    def initialize(cell, x, y, vx, vy)
      @cell = cell
      @x = x
      @y = y
      @vx = vx
      @vy = vy
      @density = @pressure = @ax = @ay = 0.0
    end

    # Computes density and pressure from the distances of all in sight.
    def weigh
      density = 0.0
      @cell.around.each do |cell|
        cell.particles.each do |other|
          dx = other.x - @x
          dy = other.y - @y
          near = SIGHT - (dx * dx + dy * dy)
          density += near * near * near if near > 0.0
        end
      end
      @density = density
      @pressure = 3.0 * (density - 2.0)
    end

    # Computes the acceleration: pressure drives particles apart, and viscosity lets them go along with others.
    def push
      @ax = 0.0
      @ay = -0.5
      @cell.around.each do |cell|
        cell.particles.each { |other| feel(other) unless other.equal?(self) }
      end
    end

    def move(seconds)
      @vx += @ax * seconds
      @vy += @ay * seconds
      @x += @vx * seconds
      @y += @vy * seconds
    end

    private

    def feel(other)
      dx = other.x - @x
      dy = other.y - @y
      square = dx * dx + dy * dy
      return if square >= SIGHT

      distance = Math.sqrt(square)
      near = 1.0 - distance
      pressure = 0.1 * (@pressure + other.pressure) * near * near / (other.density * (distance + 0.01))
      viscosity = 0.2 * near / other.density
      @ax += viscosity * (other.vx - @vx) - pressure * dx
      @ay += viscosity * (other.vy - @vy) - pressure * dy
    end
  end
end
