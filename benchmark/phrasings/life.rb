# frozen_string_literal: true

require_relative "../programs/life/model"

class Program::Life
  # Cells that look otherwise than those of the program.
  module Made
    def state(input)
      size = input[:size]
      cells = input.fetch(:alive).values.map { |alive| cell(alive == 1) }
      cells.each_with_index { |cell, index| cell.neighbours = cells.values_at(*around(index, size)) }
      [cells, input[:generations]]
    end

    def compute((cells, generations))
      cells.peach(2 * generations) { |cell| Ikra.tick.even? ? cell.look : cell.become }
    end
  end

  phrasing "count with a block, two calls for each generation" do
    def compute((cells, generations))
      generations.times do
        cells.peach(&:look)
        cells.peach(&:become)
      end
    end
  end

  # One that counts by each and a guard.
  class Each
    attr_accessor :alive, :neighbours, :fate
    alias alive? alive

    def initialize(alive)
      @alive = @fate = alive
    end

    def look
      around = 0
      neighbours.each do |cell|
        next unless cell.alive

        around += 1
      end
      self.fate = alive ? around.between?(2, 3) : around == 3
    end

    def become = self.alive = fate
  end

  phrasing "each, early next, attributes" do
    include Made

    def cell(...) = Each.new(...)
  end

  # One that counts by while, and decides by case.
  class While < Each
    def look
      around = 0
      i = 0
      while i < 8
        around += 1 if @neighbours[i].alive?
        i += 1
      end
      case around
      when 3 then @fate = true
      when 2 then @fate = @alive
      else @fate = false
      end
    end
  end

  phrasing "while, case over the count" do
    include Made

    def cell(...) = While.new(...)
  end

  # One whose life is a number.
  class Number
    attr_reader :life
    attr_writer :neighbours

    def initialize(alive)
      @life = @fate = alive ? 1 : 0
    end

    def alive? = @life == 1

    def look
      around = @neighbours.sum { |cell| cell.life }
      @fate = around == 3 || around + @life == 3 ? 1 : 0
    end

    def become
      @life = @fate
    end
  end

  phrasing "sum of numbers, a ternary" do
    include Made

    def cell(...) = Number.new(...)
  end

  # One with a guard that leaves early, and methods cut small.
  class Small < Each
    def living(cell) = cell.alive? ? 1 : 0
    def around = neighbours.reduce(0) { |sum, cell| sum + living(cell) }
    def born?(around) = around == 3
    def survives?(around) = alive? && around == 2
    def lives?(around) = born?(around) || survives?(around)
    def look = @fate = lives?(around)

    def become
      return if @alive == @fate

      @alive = @fate
    end
  end

  phrasing "methods cut small, reduce, a guard" do
    include Made

    def cell(...) = Small.new(...)
  end

  # Subclasses in place of a flag would change the class of a cell, so a Symbol has the state.
  class Symbolic
    attr_reader :state
    attr_writer :neighbours

    def initialize(alive)
      @state = @fate = alive ? :alive : :dead
    end

    def alive? = @state == :alive

    def look
      around = 0
      8.times { |i| around += 1 if @neighbours[i].state == :alive }
      @fate = around == 3 || (around == 2 && alive?) ? :alive : :dead
    end

    def become
      @state = @fate
    end
  end

  phrasing "a Symbol as state, times" do
    include Made

    def cell(...) = Symbolic.new(...)
  end

  phrasing "flat Arrays of numbers, % at the edges" do
    def state(input) = [input[:size], input[:generations], input.fetch(:alive).values.dup, [0] * input[:size]**2]
    def outputs((_, _, alive, _), _result) = { alive: alive }

    def compute((size, generations, alive, fate))
      (0...size * size).peach(2 * generations) do |i|
        next alive[i] = fate[i] if Ikra.tick.odd?

        row, column = i.divmod(size)
        around = 0
        (-1..1).each do |down|
          (-1..1).each do |right|
            next if down == 0 && right == 0

            around += alive[(row + down) % size * size + (column + right) % size]
          end
        end
        fate[i] = around == 3 || (around == 2 && alive[i] == 1) ? 1 : 0
      end
    end
  end

  phrasing "nested Arrays of true and false" do
    def state(input) = [input[:size], input[:generations], input.fetch(:alive).values.map { |alive| alive == 1 }.each_slice(input[:size]).to_a]
    def outputs(_state, result) = { alive: result.flatten(1).map { |alive| alive ? 1 : 0 } }

    def compute((size, generations, world))
      generations.times do
        before = world
        world = Array.pnew(size, size) do |row, column|
          around = AROUND.count { |down, right| before[(row + down) % size][(column + right) % size] }
          around == 3 || (around == 2 && before[row][column])
        end
      end
      world
    end
  end

  phrasing "MDArrays, indices in variables" do
    def state(input) = [Ikra::MDArray.new(input.fetch(:alive).values.each_slice(input[:size]).to_a, dtype: :u8), input[:size], input[:generations]]
    def changes? = false
    def outputs(_state, result) = { alive: result.to_a.flatten(1) }

    def compute((world, size, generations))
      generations.times do
        before = world
        world = Ikra::MDArray.new(size, size, dtype: :u8) do |row, column|
          up = (row - 1) % size
          down = (row + 1) % size
          left = (column - 1) % size
          right = (column + 1) % size
          around = before[up, left] + before[up, column] + before[up, right] + before[row, left] + before[row, right] +
                   before[down, left] + before[down, column] + before[down, right]
          around == 3 || (around == 2 && before[row, column] == 1) ? 1 : 0
        end
      end
      world.sync
    end
  end
end
