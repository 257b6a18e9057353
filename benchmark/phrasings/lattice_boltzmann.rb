# frozen_string_literal: true

require_relative "../programs/lattice_boltzmann/model"

class Program::LatticeBoltzmann
  phrasing "an object with flat Arrays, a call for each step" do
    def compute((fluid, steps, flows, others))
      steps.times do
        (0...fluid.cells).peach { |cell| fluid.flow(cell, flows, others) }
        flows, others = others, flows
      end
    end
  end

  # Flat Arrays in place of an object.
  module Flat
    def state(input) = [input[:size], input[:relaxation], input.fetch(:solid).values, input[:steps], *%i[flows others].map { |name| input.fetch(name).values.dup }]
  end

  phrasing "flat Arrays, a method with temporaries for all nine directions" do
    include Flat

    def compute((size, relaxation, solid, steps, flows, others))
      (0...size * size).peach(steps) do |cell|
        if Ikra.tick.even?
          flow(cell, size, relaxation, solid, flows, others)
        else
          flow(cell, size, relaxation, solid, others, flows)
        end
      end
    end

    def flow(cell, size, relaxation, solid, from, to)
      cells = size * size
      x = cell % size
      y = cell / size
      left = x == 0 ? size - 1 : x - 1
      right = x == size - 1 ? 0 : x + 1
      above = (y == 0 ? size - 1 : y - 1) * size
      below = (y == size - 1 ? 0 : y + 1) * size
      here = y * size
      c = from[here + x]
      e = from[cells + here + left]
      s = from[2 * cells + above + x]
      w = from[3 * cells + here + right]
      n = from[4 * cells + below + x]
      se = from[5 * cells + above + left]
      sw = from[6 * cells + above + right]
      nw = from[7 * cells + below + right]
      ne = from[8 * cells + below + left]
      if solid[cell] == 1
        to[cell] = c
        to[cells + cell] = w
        to[2 * cells + cell] = n
        to[3 * cells + cell] = e
        to[4 * cells + cell] = s
        to[5 * cells + cell] = nw
        to[6 * cells + cell] = ne
        to[7 * cells + cell] = se
        to[8 * cells + cell] = sw
        return
      end

      density = c + e + s + w + n + se + sw + nw + ne
      u = (e - w + se - sw - nw + ne) / density
      v = (s - n + se + sw - nw - ne) / density
      square = 1.5 * (u * u + v * v)
      straight = 1.0 / 9.0 * density
      slanted = 1.0 / 36.0 * density
      to[cell] = c + relaxation * (4.0 / 9.0 * density * (1.0 - square) - c)
      to[cells + cell] = e + relaxation * (straight * balance(3.0 * u, square) - e)
      to[2 * cells + cell] = s + relaxation * (straight * balance(3.0 * v, square) - s)
      to[3 * cells + cell] = w + relaxation * (straight * balance(-3.0 * u, square) - w)
      to[4 * cells + cell] = n + relaxation * (straight * balance(-3.0 * v, square) - n)
      to[5 * cells + cell] = se + relaxation * (slanted * balance(3.0 * (u + v), square) - se)
      to[6 * cells + cell] = sw + relaxation * (slanted * balance(3.0 * (v - u), square) - sw)
      to[7 * cells + cell] = nw + relaxation * (slanted * balance(3.0 * (-u - v), square) - nw)
      to[8 * cells + cell] = ne + relaxation * (slanted * balance(3.0 * (u - v), square) - ne)
    end

    def balance(along, square) = 1.0 + along + 0.5 * along * along - square
  end

  phrasing "flat Arrays, all in the block, while, early next" do
    include Flat

    def compute((size, relaxation, solid, steps, flows, others))
      cells = size * size
      (0...cells).peach(steps) do |cell|
        from, to = Ikra.tick.even? ? [flows, others] : [others, flows]
        row, column = cell.divmod(size)
        incoming = Array.new(9, 0.0)
        density = right = down = 0.0
        direction = 0
        while direction < 9
          y = (row - DOWN[direction]) % size
          x = (column - RIGHT[direction]) % size
          value = from[direction * cells + y * size + x]
          incoming[direction] = value
          density += value
          right += RIGHT[direction] * value
          down += DOWN[direction] * value
          direction += 1
        end
        if solid[cell] != 0
          incoming.each_with_index { |value, index| to[OPPOSITE[index] * cells + cell] = value }
          next
        end

        right /= density
        down /= density
        square = 1.5 * (right * right + down * down)
        direction = 0
        while direction < 9
          along = 3.0 * (RIGHT[direction] * right + DOWN[direction] * down)
          balance = WEIGHTS[direction] * density * (1.0 + along + 0.5 * along * along - square)
          to[direction * cells + cell] = incoming[direction] + relaxation * (balance - incoming[direction])
          direction += 1
        end
      end
    end
  end

  # Directions as objects.
  Direction = Struct.new(:number, :right, :down, :weight, :opposite)
  DIRECTIONS = Array.new(9) { |number| Direction.new(number, RIGHT[number], DOWN[number], WEIGHTS[number], OPPOSITE[number]) }.freeze

  # An Array for each direction.
  module Nested
    def state(input)
      cells = input[:size]**2
      [input[:size], input[:relaxation], input.fetch(:solid).values.map { |byte| byte == 1 }, input[:steps], *%i[flows others].map { |name| input.fetch(name).values.each_slice(cells).to_a }]
    end

    def outputs((*, flows, others), _result) = { flows: flows.flatten(1), others: others.flatten(1) }
  end

  phrasing "an Array for each direction, directions as Structs, map and sum by reduce" do
    include Nested

    def compute((size, relaxation, solid, steps, flows, others))
      steps.times do
        (0...size * size).peach do |cell|
          row, column = cell.divmod(size)
          incoming = DIRECTIONS.map { |way| flows[way.number][(row - way.down) % size * size + (column - way.right) % size] }
          if solid[cell]
            DIRECTIONS.each { |way| others[way.number][cell] = incoming[way.opposite] }
          else
            density = incoming.reduce(0.0) { |sum, flow| sum + flow }
            right = DIRECTIONS.reduce(0.0) { |sum, way| sum + way.right * incoming[way.number] } / density
            down = DIRECTIONS.reduce(0.0) { |sum, way| sum + way.down * incoming[way.number] } / density
            square = 1.5 * (right * right + down * down)
            DIRECTIONS.each do |way|
              along = 3.0 * (way.right * right + way.down * down)
              balance = way.weight * density * (1.0 + along + 0.5 * along * along - square)
              others[way.number][cell] = incoming[way.number] + relaxation * (balance - incoming[way.number])
            end
          end
        end
        flows, others = others, flows
      end
    end
  end

  # Cells that are objects.
  module Made
    def state(input)
      size = input[:size]
      flows, others = %i[flows others].map { |name| input.fetch(name).values.each_slice(size * size).to_a.transpose }
      cells = input.fetch(:solid).values.each_with_index.map { |byte, number| cell(byte == 1, flows[number], others[number], input[:relaxation]) }
      cells.each_with_index do |cell, number|
        row, column = number.divmod(size)
        cell.upstream = Array.new(9) { |direction| cells[(row - DOWN[direction]) % size * size + (column - RIGHT[direction]) % size] }
      end
      [cells, input[:steps]]
    end

    def outputs((cells, *), _result) = { flows: cells.map(&:flows).transpose.flatten(1), others: cells.map(&:others).transpose.flatten(1) }
    def compute((cells, steps)) = cells.peach(steps) { |cell| Ikra.tick.even? ? cell.go : cell.come_back }
  end

  # What kinds of cells have in common.
  class Cell
    attr_reader :flows, :others
    attr_writer :upstream

    def initialize(flows, others, relaxation)
      @flows = flows
      @others = others
      @relaxation = relaxation
    end

    def go = collide(Array.new(9) { |direction| @upstream[direction].flows[direction] }, @others)
    def come_back = collide(Array.new(9) { |direction| @upstream[direction].others[direction] }, @flows)
  end

  # One that throws everything back.
  class SolidCell < Cell
    def collide(incoming, to) = incoming.each_index { |direction| to[direction] = incoming[OPPOSITE[direction]] }
  end

  # One with methods cut small.
  class FluidCell < Cell
    def collide(incoming, to)
      density = incoming.reduce(0.0) { |sum, flow| sum + flow }
      right = momentum(incoming, RIGHT) / density
      down = momentum(incoming, DOWN) / density
      to.each_index { |direction| to[direction] = relaxed(incoming[direction], balance(direction, density, right, down)) }
    end

    private

    def momentum(incoming, ways) = incoming.each_with_index.reduce(0.0) { |sum, (flow, direction)| sum + ways[direction] * flow }
    def relaxed(flow, balance) = flow + @relaxation * (balance - flow)
    def along(direction, right, down) = 3.0 * (RIGHT[direction] * right + DOWN[direction] * down)
    def energy(right, down) = 1.5 * (right * right + down * down)
    def balance(direction, density, right, down) = WEIGHTS[direction] * density * shape(along(direction, right, down), energy(right, down))
    def shape(along, energy) = 1.0 + along + 0.5 * along * along - energy
  end

  phrasing "cells of two subclasses with Arrays, methods cut small" do
    include Made

    def cell(solid, *rest) = solid ? SolidCell.new(*rest) : FluidCell.new(*rest)
  end

  # One of both kinds, with attributes, times and temporaries.
  class KindOfCell
    attr_accessor :kind, :flows, :others, :upstream, :relaxation

    def initialize(kind, flows, others, relaxation)
      self.kind = kind
      self.flows = flows
      self.others = others
      self.relaxation = relaxation
    end

    def go
      case kind
      when :solid then 9.times { |direction| others[OPPOSITE[direction]] = upstream[direction].flows[direction] }
      when :fluid
        density = right = down = 0.0
        9.times do |direction|
          flow = upstream[direction].flows[direction]
          density += flow
          right += RIGHT[direction] * flow
          down += DOWN[direction] * flow
        end
        right /= density
        down /= density
        square = 1.5 * (right * right + down * down)
        9.times do |direction|
          flow = upstream[direction].flows[direction]
          along = 3.0 * (RIGHT[direction] * right + DOWN[direction] * down)
          others[direction] = flow + relaxation * (WEIGHTS[direction] * density * (1.0 + along + 0.5 * along * along - square) - flow)
        end
      end
    end

    def exchange
      self.flows, self.others = others, flows
    end
  end

  phrasing "cells with case over a Symbol, attributes, two ticks for each step" do
    include Made

    def cell(solid, *rest) = KindOfCell.new(solid ? :solid : :fluid, *rest)
    def compute((cells, steps)) = cells.peach(2 * steps) { |cell| Ikra.tick.even? ? cell.go : cell.exchange }

    def outputs((cells, steps), result)
      flows, others = super.values
      steps.even? ? { flows: flows, others: others } : { flows: others, others: flows }
    end
  end

  phrasing "rows of Arrays of nine numbers, Array.pnew, early next" do
    def state(input)
      size = input[:size]
      rows = input.fetch(:flows).values.each_slice(size * size).to_a.transpose.each_slice(size).to_a
      [size, input[:relaxation], input.fetch(:solid).values.map { |byte| byte == 1 }.each_slice(size).to_a, input[:steps], rows]
    end

    def changes? = false

    def outputs((_, _, _, steps, _), two)
      flows, others = two.rotate(steps + 1).map { |rows| rows.flatten(1).transpose.flatten(1) }
      { flows: flows, others: others }
    end

    def compute((size, relaxation, solid, steps, rows))
      before = nil
      steps.times do
        before = rows
        rows = Array.pnew(size, size) do |row, column|
          incoming = Array.new(9) { |direction| before[(row - DOWN[direction]) % size][(column - RIGHT[direction]) % size][direction] }
          next OPPOSITE.map { |direction| incoming[direction] } if solid[row][column]

          density = right = down = 0.0
          incoming.each_with_index do |flow, direction|
            density += flow
            right += RIGHT[direction] * flow
            down += DOWN[direction] * flow
          end
          right /= density
          down /= density
          square = 1.5 * (right * right + down * down)
          incoming.map.with_index do |flow, direction|
            along = 3.0 * (RIGHT[direction] * right + DOWN[direction] * down)
            flow + relaxation * (WEIGHTS[direction] * density * (1.0 + along + 0.5 * along * along - square) - flow)
          end
        end
      end
      [before, rows]
    end
  end

  # MDArrays of directions, rows and columns.
  module MDArrays
    def state(input)
      size = input[:size]
      solid = Ikra::MDArray.new(input.fetch(:solid).values).to(:bool).reshape(size, size)
      [size, input[:relaxation], solid, input[:steps], *%i[flows others].map { |name| Ikra::MDArray.new(input.fetch(name).values).reshape(9, size, size) }]
    end
  end

  phrasing "MDArrays, elements by index, two loops of times" do
    include MDArrays

    def outputs((*, flows, others), _result) = { flows: flows.to_flat_a, others: others.to_flat_a }

    def compute((size, relaxation, solid, steps, flows, others))
      (0...size * size).peach(steps) do |cell|
        Ikra.tick.even? ? flow(cell, size, relaxation, solid, flows, others) : flow(cell, size, relaxation, solid, others, flows)
      end
    end

    def flow(cell, size, relaxation, solid, from, to)
      row, column = cell.divmod(size)
      incoming = Array.new(9) { |direction| from[direction, (row - DOWN[direction]) % size, (column - RIGHT[direction]) % size] }
      if solid[row, column]
        9.times { |direction| to[direction, row, column] = incoming[OPPOSITE[direction]] }
      else
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
          to[direction, row, column] = incoming[direction] + relaxation * (balance - incoming[direction])
        end
      end
    end
  end

  phrasing "MDArrays, operators over directions, rolled" do
    include MDArrays

    def changes? = false

    def outputs((_, _, _, steps, _), two)
      flows, others = two.rotate(steps + 1).map { |directions| directions.flat_map(&:to_flat_a) }
      { flows: flows, others: others }
    end

    def compute((_size, relaxation, solid, steps, flows, _))
      flows = Array.new(9) { |direction| flows[direction] }
      before = nil
      steps.times do
        before = flows
        incoming = flows.each_with_index.map { |flow, direction| rolled(rolled(flow, DOWN[direction], 0), RIGHT[direction], 1) }
        density = incoming.reduce(:+)
        right = incoming.zip(RIGHT).map { |flow, way| flow * way }.reduce(:+) / density
        down = incoming.zip(DOWN).map { |flow, way| flow * way }.reduce(:+) / density
        square = (right * right + down * down) * 1.5
        flows = incoming.each_with_index.map do |flow, direction|
          along = (right * RIGHT[direction] + down * DOWN[direction]) * 3.0
          balance = density * WEIGHTS[direction] * (along + 1.0 + along * 0.5 * along - square)
          Ikra::MDArray.where(solid, incoming[OPPOSITE[direction]], flow + (balance - flow) * relaxation)
        end
        flows.each(&:sync)
      end
      [before, flows]
    end

    def rolled(array, by, axis)
      return array if by == 0

      parts = by == 1 ? [-1..-1, 0..-2] : [1..-1, 0..0]
      Ikra::MDArray.concat(*parts.map { |part| axis == 0 ? array[part, true] : array[true, part] }, axis: axis)
    end
  end
end
