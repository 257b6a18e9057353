# frozen_string_literal: true

require_relative "../programs/nbody/model"

class Program::Nbody
  # Stars that look otherwise than those of the program.
  module Made
    def state(input)
      columns = [:mass, *STATE].map { |name| input.fetch(name).values }
      [columns.transpose.map { |numbers| star(*numbers) }, input[:steps], input[:seconds]]
    end

    def compute((stars, steps, seconds))
      stars.peach(2 * steps) { |star| Ikra.tick.even? ? star.attract(stars, seconds) : star.move(seconds) }
    end
  end

  phrasing "ivars, each, two calls for each step" do
    def compute((stars, steps, seconds))
      steps.times do
        stars.peach { |star| star.attract(stars, seconds) }
        stars.peach { |star| star.move(seconds) }
      end
    end
  end

  # One with attributes, methods cut small, and a guard.
  class Attributes
    attr_accessor :mass, :x, :y, :z, :vx, :vy, :vz

    def initialize(mass, x, y, z, vx, vy, vz)
      self.mass = mass
      self.x = x
      self.y = y
      self.z = z
      self.vx = vx
      self.vy = vy
      self.vz = vz
    end

    def attract(stars, seconds)
      ax = ay = az = 0.0
      stars.each do |star|
        next if star.equal?(self)

        pull = pull_of(star)
        ax += (star.x - x) * pull
        ay += (star.y - y) * pull
        az += (star.z - z) * pull
      end
      self.vx += ax * seconds
      self.vy += ay * seconds
      self.vz += az * seconds
    end

    def move(seconds)
      self.x += vx * seconds
      self.y += vy * seconds
      self.z += vz * seconds
    end

    private

    def squared(number) = number * number
    def square(other) = squared(other.x - x) + squared(other.y - y) + squared(other.z - z) + 0.05
    def cube(square) = square * Math.sqrt(square)
    def pull_of(other) = other.mass / cube(square(other))
  end

  phrasing "attributes, methods cut small, a guard against itself" do
    include Made

    def star(...) = Attributes.new(...)
  end

  # One with loops by index.
  class Indexed < Attributes
    def attract(stars, seconds)
      ax = ay = az = 0.0
      i = 0
      while i < stars.size
        star = stars[i]
        dx, dy, dz = star.x - @x, star.y - @y, star.z - @z
        pull = star.mass / cube(dx * dx + dy * dy + dz * dz + 0.05)
        ax += dx * pull
        ay += dy * pull
        az += dz * pull
        i += 1
      end
      @vx, @vy, @vz = @vx + ax * seconds, @vy + ay * seconds, @vz + az * seconds
    end
  end

  phrasing "ivars, while, assignments in parallel" do
    include Made

    def star(...) = Indexed.new(...)
  end

  # One that adds to its velocity at once.
  class Times < Attributes
    def attract(stars, seconds)
      stars.size.times do |i|
        pull = seconds * pull_of(stars[i])
        @vx += (stars[i].x - @x) * pull
        @vy += (stars[i].y - @y) * pull
        @vz += (stars[i].z - @z) * pull
      end
    end
  end

  phrasing "ivars that take each sum, times" do
    include Made

    def star(...) = Times.new(...)
    def tolerance = [1e-12, "seconds are multiplied before the sum"]
  end

  Place = Struct.new(:x, :y, :z) do
    def -(other) = Place.new(x - other.x, y - other.y, z - other.z)
    def +(other) = Place.new(x + other.x, y + other.y, z + other.z)
    def *(factor) = Place.new(x * factor, y * factor, z * factor)
    def square = x * x + y * y + z * z
  end

  # One whose place and velocity are objects of their own.
  class Vectors
    attr_reader :mass, :place, :velocity

    def initialize(mass, x, y, z, vx, vy, vz)
      @mass = mass
      @place = Place.new(x, y, z)
      @velocity = Place.new(vx, vy, vz)
    end

    def attract(stars, seconds)
      sum = Place.new(0.0, 0.0, 0.0)
      stars.each do |star|
        away = star.place - @place
        square = away.square + 0.05
        sum += away * (star.mass / (square * Math.sqrt(square)))
      end
      @velocity += sum * seconds
    end

    def move(seconds) = @place += @velocity * seconds
  end

  phrasing "Structs as vectors with operators" do
    include Made

    def star(...) = Vectors.new(...)

    def outputs((stars, *), _result)
      STATE.to_h { |name| [name, stars.map { |star| (name.size == 1 ? star.place : star.velocity)[name[-1]] }] }
    end
  end

  phrasing "flat Arrays of fields, each_index" do
    def state(input) = [input.fetch(:mass).values, *STATE.map { |name| input.fetch(name).values.dup }, input[:steps], input[:seconds]]
    def outputs((_, *fields, _, _), _result) = STATE.zip(fields).to_h

    def compute((mass, x, y, z, vx, vy, vz, steps, seconds))
      (0...mass.size).peach(2 * steps) do |i|
        if Ikra.tick.odd?
          x[i] += vx[i] * seconds
          y[i] += vy[i] * seconds
          z[i] += vz[i] * seconds
          next
        end

        ax = ay = az = 0.0
        mass.each_index do |j|
          dx = x[j] - x[i]
          dy = y[j] - y[i]
          dz = z[j] - z[i]
          square = dx * dx + dy * dy + dz * dz + 0.05
          pull = mass[j] / (square * Math.sqrt(square))
          ax += dx * pull
          ay += dy * pull
          az += dz * pull
        end
        vx[i] += ax * seconds
        vy[i] += ay * seconds
        vz[i] += az * seconds
      end
    end
  end
end
