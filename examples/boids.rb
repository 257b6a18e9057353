# frozen_string_literal: true

# A flock of birds (Reynolds' boids): each keeps its distance, flies where the others fly, and stays with them.
#
#   ruby -Ilib examples/boids.rb [birds]

require_relative "support/comparison"

module Boids
  Vector = Struct.new(:x, :y) do
    def self.zero = new(0.0, 0.0)

    def +(other) = Vector.new(x + other.x, y + other.y)
    def -(other) = Vector.new(x - other.x, y - other.y)
    def *(factor) = Vector.new(x * factor, y * factor)
    def /(divisor) = Vector.new(x / divisor, y / divisor)
    def length = Math.hypot(x, y)
    def limit(most) = length > most ? self * (most / length) : self
  end

  class Bird
    SIGHT = 6.0
    ELBOW_ROOM = 1.5
    TOP_SPEED = 1.2

    attr_reader :position, :velocity

    def initialize(position, velocity)
      @position = position
      @velocity = velocity
    end

    def decide(flock, field)
      others = flock.select { |other| sees?(other) }
      @urge = homing(field)
      @urge += (separation(others) * 0.05 + alignment(others) * 0.08 + cohesion(others) * 0.01) unless others.empty?
    end

    def fly
      @velocity = (@velocity + @urge).limit(TOP_SPEED)
      @position += @velocity
    end

    private

    def sees?(other)
      return false if other.equal?(self)

      away = other.position - position
      away.x.abs < SIGHT && away.y.abs < SIGHT && away.length < SIGHT
    end

    def separation(others)
      others.map { |other| position - other.position }
            .select { |away| away.length < ELBOW_ROOM }
            .sum(Vector.zero)
    end

    def alignment(others) = average(others) { |other| other.velocity } - velocity

    def cohesion(others) = average(others) { |other| other.position } - position

    def average(others)
      sum = Vector.zero
      others.each { |other| sum += yield other }
      sum / others.size
    end

    # The steering from the edges back towards the middle.
    def homing(field)
      Vector.new(back(position.x, field), back(position.y, field))
    end

    def back(place, field)
      if place < 0 then 0.1
      elsif place > field then -0.1
      else 0.0
      end
    end
  end

  def self.flock(count, field, random: Random.new(9))
    Array.new(count) do
      angle = random.rand * 2 * Math::PI
      Bird.new(Vector.new(random.rand * field, random.rand * field), Vector.new(Math.cos(angle), Math.sin(angle)))
    end
  end

  def self.field(count) = Math.sqrt(count) * 3.0

  # Where each bird is after a while, and where it is heading.
  def self.run(count, steps: 60)
    flock = flock(count, field(count))
    steps.times do
      flock.peach { |bird| bird.decide(flock, field(count)) }
      flock.peach(&:fly)
    end
    flock.map { |bird| [*bird.position, *bird.velocity] }
  end

  def self.picture(birds)
    scale = 700 / field(birds.size)
    lines = birds.map do |x, y, dx, dy|
      from = [50 + x * scale, 50 + y * scale]
      hue = Math.atan2(dy, dx) * 180 / Math::PI + 180
      format('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="hsl(%d, 80%%, 65%%)"/>', *from, from[0] - dx * 9, from[1] - dy * 9, hue)
    end
    <<~SVG
      <svg xmlns="http://www.w3.org/2000/svg" width="800" height="800"><rect width="800" height="800" fill="#0d1220"/><g stroke-width="2.5" stroke-linecap="round">
      #{lines.join("\n")}</g></svg>
    SVG
  end
end

if $PROGRAM_NAME == __FILE__
  birds = Comparison.run(1_000) { |count| Boids.run(count) }
  heading = birds.sum { |_, _, dx, dy| Complex(dx, dy) / Complex(dx, dy).abs } / birds.size
  puts format("The birds agree on their heading to %.0f %%.", heading.abs * 100)
  File.write("boids.svg", Boids.picture(birds))
  puts "Picture: boids.svg"
end
