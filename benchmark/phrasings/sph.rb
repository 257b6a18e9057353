# frozen_string_literal: true

require_relative "../programs/sph/model"

class Program::Sph
  phrasing "each with early return, three calls for each step" do
    def compute((particles, steps, seconds))
      steps.times do
        particles.peach(&:weigh)
        particles.peach(&:push)
        particles.peach { |particle| particle.move(seconds) }
      end
    end
  end

  # Particles that look otherwise than those of the program, in cells like its own.
  module Made
    def state(input)
      particles, *rest = super
      cells = particles.map { |particle| particle.instance_variable_get(:@cell) }
      made = particles.each_with_index.to_h { |particle, index| [particle, particle(cells[index], *STATE.map { |name| particle.public_send(name) })] }.compare_by_identity
      cells.uniq.each { |cell| cell.particles = cell.particles.map { |particle| made[particle] } }
      [made.values, *rest]
    end
  end

  # What the particles below have in common.
  class Other
    attr_accessor :cell, :x, :y, :vx, :vy, :ax, :ay, :density, :pressure

    def initialize(cell, x, y, vx, vy)
      @cell = cell
      @x = x
      @y = y
      @vx = vx
      @vy = vy
      @density = @pressure = @ax = @ay = 0.0
    end

    def move(seconds)
      self.vx += ax * seconds
      self.vy += ay * seconds
      self.x += vx * seconds
      self.y += vy * seconds
    end
  end

  # One with loops over indices and nested conditions.
  class While < Other
    def weigh
      sum = 0.0
      i = 0
      while i < @cell.around.size
        particles = @cell.around[i].particles
        j = 0
        while j < particles.size
          dx = particles[j].x - @x
          dy = particles[j].y - @y
          near = SIGHT - (dx * dx + dy * dy)
          sum += near * near * near if near > 0.0
          j += 1
        end
        i += 1
      end
      @density = sum
      @pressure = 3.0 * (sum - 2.0)
    end

    def push
      ax = 0.0
      ay = -0.5
      i = 0
      while i < @cell.around.size
        particles = @cell.around[i].particles
        j = 0
        while j < particles.size
          other = particles[j]
          dx = other.x - @x
          dy = other.y - @y
          square = dx * dx + dy * dy
          if square < SIGHT && !other.equal?(self)
            distance = Math.sqrt(square)
            near = 1.0 - distance
            pressure = 0.1 * (@pressure + other.pressure) * near * near / (other.density * (distance + 0.01))
            viscosity = 0.2 * near / other.density
            ax += viscosity * (other.vx - @vx) - pressure * dx
            ay += viscosity * (other.vy - @vy) - pressure * dy
          end
          j += 1
        end
        i += 1
      end
      @ax = ax
      @ay = ay
    end
  end

  phrasing "while, nested conditions, sums in temporaries" do
    include Made

    def particle(...) = While.new(...)
  end

  # One with attributes and methods cut small, which yields those in sight.
  class Small < Other
    def weigh
      self.density = 0.0
      each_near { |other| self.density += cubed(SIGHT - square_to(other)) }
      self.pressure = 3.0 * (density - 2.0)
    end

    def push
      self.ax = 0.0
      self.ay = -0.5
      each_near { |other| feel(other) unless other.equal?(self) }
    end

    private

    def cubed(number) = number * number * number
    def square_to(other) = (other.x - x) * (other.x - x) + (other.y - y) * (other.y - y)
    def sees?(other) = square_to(other) < SIGHT
    def each_near = cell.around.each { |cell| cell.particles.each { |other| yield other if sees?(other) } }
    def nearness(distance) = 1.0 - distance
    def push_of(other, distance) = 0.1 * (pressure + other.pressure) * nearness(distance) * nearness(distance) / (other.density * (distance + 0.01))
    def pull_of(other, distance) = 0.2 * nearness(distance) / other.density

    def feel(other)
      distance = Math.sqrt(square_to(other))
      self.ax += pull_of(other, distance) * (other.vx - vx) - push_of(other, distance) * (other.x - x)
      self.ay += pull_of(other, distance) * (other.vy - vy) - push_of(other, distance) * (other.y - y)
    end
  end

  phrasing "attributes, methods cut small, yield" do
    include Made

    def particle(...) = Small.new(...)
  end

  # One without a guard against itself: it is at no distance, and as fast as itself.
  class Ternary < Other
    def weigh
      density = 0.0
      @cell.around.size.times do |i|
        @cell.around[i].particles.size.times do |j|
          other = @cell.around[i].particles[j]
          near = SIGHT - ((other.x - @x)**2 + (other.y - @y)**2)
          density += near > 0.0 ? near**3 : 0.0
        end
      end
      @density, @pressure = density, 3.0 * (density - 2.0)
    end

    def push
      @ax, @ay = 0.0, -0.5
      @cell.around.size.times do |i|
        @cell.around[i].particles.size.times do |j|
          other = @cell.around[i].particles[j]
          dx, dy = other.x - @x, other.y - @y
          square = dx**2 + dy**2
          near = square < SIGHT ? 1.0 - Math.sqrt(square) : 0.0
          pressure = near > 0.0 ? 0.1 * (@pressure + other.pressure) * near * near / (other.density * (Math.sqrt(square) + 0.01)) : 0.0
          viscosity = 0.2 * near / other.density
          @ax += viscosity * (other.vx - @vx) - pressure * dx
          @ay += viscosity * (other.vy - @vy) - pressure * dy
        end
      end
    end
  end

  phrasing "times, ternaries, powers by **, no guard against itself" do
    include Made

    def particle(...) = Ternary.new(...)
    def tolerance = [1e-12, "powers round otherwise than products"]
  end

  # One that knows its neighbours, and adds by reduce.
  class Listed < Other
    attr_writer :neighbours

    def weigh
      @density = @neighbours.reduce(0.0) do |sum, other|
        near = SIGHT - ((other.x - @x) * (other.x - @x) + (other.y - @y) * (other.y - @y))
        near > 0.0 ? sum + near * near * near : sum
      end
      @pressure = 3.0 * (@density - 2.0)
    end

    def push
      @ax = 0.0
      @ay = -0.5
      @neighbours.each do |other|
        next if other == self

        dx = other.x - @x
        dy = other.y - @y
        square = dx * dx + dy * dy
        next unless square < SIGHT

        distance = Math.sqrt(square)
        near = 1.0 - distance
        pressure = 0.1 * (@pressure + other.pressure) * near * near / (other.density * (distance + 0.01))
        viscosity = 0.2 * near / other.density
        @ax += viscosity * (other.vx - @vx) - pressure * dx
        @ay += viscosity * (other.vy - @vy) - pressure * dy
      end
    end
  end

  phrasing "an Array of neighbours for each, reduce, early next" do
    include Made

    def particle(...) = Listed.new(...)

    def state(input)
      super.tap { |particles, *| particles.each { |particle| particle.neighbours = particle.cell.around.flat_map(&:particles) } }
    end
  end

  Vector = Struct.new(:x, :y) do
    def +(other) = Vector.new(x + other.x, y + other.y)
    def -(other) = Vector.new(x - other.x, y - other.y)
    def *(factor) = Vector.new(x * factor, y * factor)
    def square = x * x + y * y
  end

  # One whose place, velocity and acceleration are vectors.
  class Vectors
    attr_reader :place, :velocity, :density, :pressure

    def initialize(cell, x, y, vx, vy)
      @cell = cell
      @place = Vector.new(x, y)
      @velocity = Vector.new(vx, vy)
      @acceleration = Vector.new(0.0, 0.0)
      @density = @pressure = 0.0
    end

    def weigh
      @density = 0.0
      @cell.around.each do |cell|
        cell.particles.each do |other|
          near = SIGHT - (other.place - place).square
          @density += near * near * near if near > 0.0
        end
      end
      @pressure = 3.0 * (@density - 2.0)
    end

    def push
      sum = Vector.new(0.0, -0.5)
      @cell.around.each do |cell|
        cell.particles.each { |other| sum += force(other) unless other.equal?(self) }
      end
      @acceleration = sum
    end

    def move(seconds)
      @velocity += @acceleration * seconds
      @place += @velocity * seconds
    end

    private

    def force(other)
      away = other.place - place
      return Vector.new(0.0, 0.0) if away.square >= SIGHT

      distance = Math.sqrt(away.square)
      near = 1.0 - distance
      pressure = 0.1 * (@pressure + other.pressure) * near * near / (other.density * (distance + 0.01))
      (other.velocity - velocity) * (0.2 * near / other.density) - away * pressure
    end
  end

  phrasing "Structs as vectors with operators" do
    include Made

    def particle(...) = Vectors.new(...)

    def outputs((particles, *), _result)
      STATE.to_h { |name| [name, particles.map { |particle| (name.size == 1 ? particle.place : particle.velocity)[name[-1]] }] }
    end
  end

  # Arrays of numbers in place of objects.
  module Flat
    def state(input)
      columns = STATE.map { |name| input.fetch(name).values.dup }
      [columns, Array.new(4) { Array.new(columns[0].size, 0.0) }, %i[cell first members].map { |name| input.fetch(name).values }, input[:across], input[:steps], input[:seconds]]
    end

    def outputs((columns, *), _result) = STATE.zip(columns).to_h
  end

  phrasing "flat Arrays, Ranges of rows and columns, early next" do
    include Flat

    def compute(((x, y, vx, vy), (density, pressure, ax, ay), (cell, first, members), across, steps, seconds))
      steps.times do
        (0...x.size).peach do |i|
          row, column = cell[i].divmod(across)
          sum = 0.0
          ([row - 1, 0].max..[row + 1, across - 1].min).each do |down|
            ([column - 1, 0].max..[column + 1, across - 1].min).each do |right|
              (first[down * across + right]...first[down * across + right + 1]).each do |k|
                j = members[k]
                near = SIGHT - ((x[j] - x[i]) * (x[j] - x[i]) + (y[j] - y[i]) * (y[j] - y[i]))
                sum += near * near * near if near > 0.0
              end
            end
          end
          density[i] = sum
          pressure[i] = 3.0 * (sum - 2.0)
        end
        (0...x.size).peach do |i|
          row, column = cell[i].divmod(across)
          ax[i] = 0.0
          ay[i] = -0.5
          ([row - 1, 0].max..[row + 1, across - 1].min).each do |down|
            ([column - 1, 0].max..[column + 1, across - 1].min).each do |right|
              (first[down * across + right]...first[down * across + right + 1]).each do |k|
                j = members[k]
                next if i == j

                dx = x[j] - x[i]
                dy = y[j] - y[i]
                square = dx * dx + dy * dy
                next if square >= SIGHT

                distance = Math.sqrt(square)
                near = 1.0 - distance
                push = 0.1 * (pressure[i] + pressure[j]) * near * near / (density[j] * (distance + 0.01))
                viscosity = 0.2 * near / density[j]
                ax[i] += viscosity * (vx[j] - vx[i]) - push * dx
                ay[i] += viscosity * (vy[j] - vy[i]) - push * dy
              end
            end
          end
        end
        (0...x.size).peach do |i|
          vx[i] += ax[i] * seconds
          vy[i] += ay[i] * seconds
          x[i] += vx[i] * seconds
          y[i] += vy[i] * seconds
        end
      end
    end
  end

  # One call. Cells of a row lie beside each other, and so do their members.
  module ByRows
    def compute(((x, y, vx, vy), (density, pressure, ax, ay), (cell, first, members), across, steps, seconds))
      (0...x.size).peach(3 * steps) do |i|
        if Ikra.tick % 3 == 0
          density[i] = density_at(i, x, y, cell, first, members, across)
          pressure[i] = 3.0 * (density[i] - 2.0)
        elsif Ikra.tick % 3 == 1
          ax[i], ay[i] = acceleration(i, x, y, vx, vy, density, pressure, cell, first, members, across)
        else
          vx[i] += ax[i] * seconds
          vy[i] += ay[i] * seconds
          x[i] += vx[i] * seconds
          y[i] += vy[i] * seconds
        end
      end
    end

    def around(cell, first, members, across)
      row = cell / across
      column = cell % across
      left = column > 0 ? column - 1 : 0
      right = column < across - 1 ? column + 1 : across - 1
      -1.upto(1) do |down|
        next if row + down < 0 || row + down >= across

        start = (row + down) * across
        first[start + left].upto(first[start + right + 1] - 1) { |k| yield members[k] }
      end
    end

    def density_at(i, x, y, cell, first, members, across)
      sum = 0.0
      around(cell[i], first, members, across) do |j|
        dx = x[j] - x[i]
        dy = y[j] - y[i]
        near = SIGHT - (dx * dx + dy * dy)
        sum += near * near * near if near > 0.0
      end
      sum
    end

    def acceleration(i, x, y, vx, vy, density, pressure, cell, first, members, across)
      ax = 0.0
      ay = -0.5
      around(cell[i], first, members, across) do |j|
        dx = x[j] - x[i]
        dy = y[j] - y[i]
        square = dx * dx + dy * dy
        next if square >= SIGHT || j == i

        distance = Math.sqrt(square)
        near = 1.0 - distance
        push = 0.1 * (pressure[i] + pressure[j]) * near * near / (density[j] * (distance + 0.01))
        viscosity = 0.2 * near / density[j]
        ax += viscosity * (vx[j] - vx[i]) - push * dx
        ay += viscosity * (vy[j] - vy[i]) - push * dy
      end
      [ax, ay]
    end
  end

  phrasing "flat Arrays, methods, upto over members of three cells" do
    include Flat
    include ByRows
  end

  phrasing "MDArrays, methods, upto over members of three cells" do
    include Flat
    include ByRows

    def state(input) = super.map { |part| part.is_a?(Array) ? part.map { |list| Ikra::MDArray.new(list) } : part }
    def outputs(...) = super.transform_values(&:to_a)
  end
end
