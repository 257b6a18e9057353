# frozen_string_literal: true

require_relative "../programs/boids/model"

class Program::Boids
  # Birds that look otherwise than those of the program.
  module Made
    def state(input) = [STATE.map { |name| input.fetch(name).values }.transpose.map { |numbers| bird(*numbers) }, input[:steps], input[:field]]

    def compute((flock, steps, field))
      flock.peach(2 * steps) { |bird| Ikra.tick.even? ? bird.decide(flock, field) : bird.fly }
    end
  end

  phrasing "each with early next, two calls for each step" do
    def compute((flock, steps, field))
      steps.times do
        flock.peach { |bird| bird.decide(flock, field) }
        flock.peach(&:fly)
      end
    end
  end

  # What the birds below have in common.
  class Other
    attr_accessor :x, :y, :vx, :vy, :ux, :uy

    def initialize(x, y, vx, vy)
      @x, @y, @vx, @vy = x, y, vx, vy
      @ux = @uy = 0.0
    end

    def fly
      self.vx += ux
      self.vy += uy
      speed = Math.sqrt(vx * vx + vy * vy)
      slow_down(1.2 / speed) if speed > 1.2
      self.x += vx
      self.y += vy
    end

    def slow_down(factor)
      self.vx *= factor
      self.vy *= factor
    end

    def home(place, field) = place < 0.0 ? 0.1 : (place > field ? -0.1 : 0.0) # rubocop:disable Style/NestedTernaryOperator

    # Takes what the sums over all birds in sight say.
    def steer(field, count, away_x, away_y, along_x, along_y, to_x, to_y)
      @ux = home(x, field)
      @uy = home(y, field)
      return unless count.positive?

      @ux += away_x * 0.05 + (along_x / count - vx) * 0.08 + (to_x / count - x) * 0.01
      @uy += away_y * 0.05 + (along_y / count - vy) * 0.08 + (to_y / count - y) * 0.01
    end
  end

  # One whose conditions are nested.
  class Nested < Other
    def decide(flock, field)
      count = 0
      away_x = away_y = along_x = along_y = to_x = to_y = 0.0
      i = 0
      while i < flock.size
        bird = flock[i]
        unless bird.equal?(self)
          dx = x - bird.x
          dy = y - bird.y
          square = dx * dx + dy * dy
          if square < 36.0
            count += 1
            along_x += bird.vx
            along_y += bird.vy
            to_x += bird.x
            to_y += bird.y
            if square < 2.25
              away_x += dx
              away_y += dy
            end
          end
        end
        i += 1
      end
      steer(field, count, away_x, away_y, along_x, along_y, to_x, to_y)
    end
  end

  phrasing "while, nested conditions, attributes" do
    include Made

    def bird(...) = Nested.new(...)
  end

  # One with loops and sums of other kinds.
  class Ternary < Other
    def decide(flock, field)
      count = 0
      away_x = away_y = along_x = along_y = to_x = to_y = 0.0
      flock.size.times do |i|
        bird = flock[i]
        dx = @x - bird.x
        dy = @y - bird.y
        square = dx * dx + dy * dy
        seen = square < 36.0 && !bird.equal?(self)
        near = seen && square < 2.25
        count += seen ? 1 : 0
        along_x += seen ? bird.vx : 0.0
        along_y += seen ? bird.vy : 0.0
        to_x += seen ? bird.x : 0.0
        to_y += seen ? bird.y : 0.0
        away_x += near ? dx : 0.0
        away_y += near ? dy : 0.0
      end
      steer(field, count, away_x, away_y, along_x, along_y, to_x, to_y)
    end
  end

  phrasing "times, ternaries in place of branches" do
    include Made

    def bird(...) = Ternary.new(...)
  end

  # One that keeps sums in ivars, and asks by methods cut small.
  class Small < Other
    def initialize(...)
      super
      @count = 0
      @away_x = @away_y = @along_x = @along_y = @to_x = @to_y = 0.0
    end

    def decide(flock, field)
      @count = 0
      @away_x = @away_y = @along_x = @along_y = @to_x = @to_y = 0.0
      flock.each { |bird| see(bird) if sees?(bird) }
      steer(field, @count, @away_x, @away_y, @along_x, @along_y, @to_x, @to_y)
    end

    def square_to(bird) = (x - bird.x) * (x - bird.x) + (y - bird.y) * (y - bird.y)
    def sees?(bird) = !bird.equal?(self) && square_to(bird) < 36.0
    def too_near?(bird) = square_to(bird) < 2.25

    def see(bird)
      @count += 1
      @along_x += bird.vx
      @along_y += bird.vy
      @to_x += bird.x
      @to_y += bird.y
      avoid(bird) if too_near?(bird)
    end

    def avoid(bird)
      @away_x += x - bird.x
      @away_y += y - bird.y
    end
  end

  phrasing "methods cut small, sums in ivars" do
    include Made

    def bird(...) = Small.new(...)
  end

  # One that chooses first, and sums then.
  class Chosen < Other
    def decide(flock, field)
      seen = flock.select { |bird| !bird.equal?(self) && square_to(bird) < 36.0 }
      away_x = away_y = along_x = along_y = to_x = to_y = 0.0
      seen.each do |bird|
        along_x += bird.vx
        along_y += bird.vy
        to_x += bird.x
        to_y += bird.y
      end
      seen.select { |bird| square_to(bird) < 2.25 }.each do |bird|
        away_x += x - bird.x
        away_y += y - bird.y
      end
      steer(field, seen.size, away_x, away_y, along_x, along_y, to_x, to_y)
    end

    def square_to(bird) = (x - bird.x) * (x - bird.x) + (y - bird.y) * (y - bird.y)
  end

  phrasing "select, then sums over the chosen" do
    include Made

    def bird(...) = Chosen.new(...)
  end
end
