# frozen_string_literal: true

class Program::LatticeBoltzmann
  class Fluid
    attr_reader :cells

    def initialize(size, relaxation, solid)
      @size = size
      @cells = size * size
      @relaxation = relaxation
      @solid = solid
    end

    # One step of one cell.
    def flow(cell, from, to)
      incoming = Array.new(9) { |direction| from[direction * @cells + upstream(cell, direction)] }
      if @solid[cell]
        9.times { |direction| to[direction * @cells + cell] = incoming[OPPOSITE[direction]] }
      else
        collide(cell, incoming, to)
      end
    end

    private

    # The cell from which something comes in a direction.
    def upstream(cell, direction)
      row, column = cell.divmod(@size)
      (row - DOWN[direction]) % @size * @size + (column - RIGHT[direction]) % @size
    end

    def collide(cell, incoming, to)
      density = right = down = 0.0
      9.times do |direction|
        density += incoming[direction]
        right += RIGHT[direction] * incoming[direction]
        down += DOWN[direction] * incoming[direction]
      end
      right /= density
      down /= density
      square = 1.5 * (right * right + down * down)
      9.times do |direction|
        along = 3.0 * (RIGHT[direction] * right + DOWN[direction] * down)
        balance = WEIGHTS[direction] * density * (1.0 + along + 0.5 * along * along - square)
        to[direction * @cells + cell] = incoming[direction] + @relaxation * (balance - incoming[direction])
      end
    end
  end
end
