# frozen_string_literal: true

# A disc of stars under their own gravity: each is an object that is drawn to all others.
#
#   ruby -Ilib examples/nbody.rb [stars]

require_relative "support/comparison"

module NBody
  Vector = Struct.new(:x, :y, :z) do
    def +(other) = Vector.new(x + other.x, y + other.y, z + other.z)
    def -(other) = Vector.new(x - other.x, y - other.y, z - other.z)
    def *(factor) = Vector.new(x * factor, y * factor, z * factor)
    def dot(other) = x * other.x + y * other.y + z * other.z
  end

  class Star
    SOFTENING = 0.05

    attr_reader :mass, :position, :velocity

    def initialize(mass, position, velocity)
      @mass = mass
      @position = position
      @velocity = velocity
    end

    def attract(stars, seconds)
      pull = stars.inject(Vector.new(0.0, 0.0, 0.0)) do |sum, star|
        star.equal?(self) ? sum : sum + pull_of(star)
      end
      @velocity += pull * seconds
    end

    def move(seconds)
      @position += @velocity * seconds
    end

    def kinetic_energy = 0.5 * mass * velocity.dot(velocity)

    private

    def pull_of(other)
      away = other.position - position
      distance = Math.sqrt(away.dot(away) + SOFTENING)
      away * (other.mass / distance**3)
    end
  end

  class Galaxy
    attr_reader :stars

    def initialize(count, random: Random.new(1))
      @stars = Array.new(count) do
        radius = 0.2 + random.rand * 4
        angle = random.rand * 2 * Math::PI
        speed = Math.sqrt(radius / 4)
        Star.new(1.0 / count, Vector.new(radius * Math.cos(angle), radius * Math.sin(angle), random.rand * 0.1),
                 Vector.new(-speed * Math.sin(angle), speed * Math.cos(angle), 0.0) * 0.6)
      end
    end

    def simulate(steps, seconds: 0.01)
      steps.times do
        @stars.peach { |star| star.attract(@stars, seconds) }
        @stars.peach { |star| star.move(seconds) }
      end
    end
  end

  # Where the stars are after a while, and how fast.
  def self.run(count, steps: 10)
    galaxy = Galaxy.new(count)
    galaxy.simulate(steps)
    galaxy.stars.map { |star| [*star.position, star.kinetic_energy] }
  end

  def self.picture(places)
    dots = places.map do |x, y, _, energy|
      format('<circle cx="%.1f" cy="%.1f" r="2" fill="hsl(%d, 90%%, 65%%)"/>', 400 + x * 85, 400 + y * 85, 220 - [energy * places.size * 600, 200].min)
    end
    %(<svg xmlns="http://www.w3.org/2000/svg" width="800" height="800"><rect width="800" height="800" fill="#0d1220"/>\n#{dots.join("\n")}</svg>\n)
  end
end

if $PROGRAM_NAME == __FILE__
  places = Comparison.run(1_000) { |stars| NBody.run(stars) }
  puts format("Kinetic energy: %.6f", places.sum(&:last))
  File.write("nbody.svg", NBody.picture(places))
  puts "Picture: nbody.svg"
end
