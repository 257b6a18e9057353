# frozen_string_literal: true

class Program::Nbody
  class Star
    attr_reader :mass, :x, :y, :z, :vx, :vy, :vz

    def initialize(mass, x, y, z, vx, vy, vz)
      @mass = mass
      @x = x
      @y = y
      @z = z
      @vx = vx
      @vy = vy
      @vz = vz
    end

    def attract(stars, seconds)
      ax = ay = az = 0.0
      stars.each do |star|
        dx = star.x - @x
        dy = star.y - @y
        dz = star.z - @z
        square = dx * dx + dy * dy + dz * dz + 0.05
        pull = star.mass / (square * Math.sqrt(square))
        ax += dx * pull
        ay += dy * pull
        az += dz * pull
      end
      @vx += ax * seconds
      @vy += ay * seconds
      @vz += az * seconds
    end

    def move(seconds)
      @x += @vx * seconds
      @y += @vy * seconds
      @z += @vz * seconds
    end
  end
end
