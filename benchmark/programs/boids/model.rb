# frozen_string_literal: true

class Program::Boids
  class Bird
    attr_reader :x, :y, :vx, :vy

    def initialize(x, y, vx, vy)
      @x = x
      @y = y
      @vx = vx
      @vy = vy
      @ux = @uy = 0.0
    end

    def decide(flock, field)
      count = 0
      away_x = away_y = along_x = along_y = to_x = to_y = 0.0
      flock.each do |bird|
        next if bird.equal?(self)

        dx = @x - bird.x
        dy = @y - bird.y
        square = dx * dx + dy * dy
        next if square >= 36.0

        count += 1
        along_x += bird.vx
        along_y += bird.vy
        to_x += bird.x
        to_y += bird.y
        next if square >= 2.25

        away_x += dx
        away_y += dy
      end
      @ux = home(@x, field)
      @uy = home(@y, field)
      return if count == 0

      @ux += away_x * 0.05 + (along_x / count - @vx) * 0.08 + (to_x / count - @x) * 0.01
      @uy += away_y * 0.05 + (along_y / count - @vy) * 0.08 + (to_y / count - @y) * 0.01
    end

    def fly
      @vx += @ux
      @vy += @uy
      speed = Math.sqrt(@vx * @vx + @vy * @vy)
      if speed > 1.2
        @vx *= 1.2 / speed
        @vy *= 1.2 / speed
      end
      @x += @vx
      @y += @vy
    end

    private

    # The steering from the edges back towards the middle.
    def home(place, field)
      if place < 0.0 then 0.1
      elsif place > field then -0.1
      else 0.0
      end
    end
  end
end
