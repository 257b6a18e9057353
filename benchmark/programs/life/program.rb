# frozen_string_literal: true

# Conway's Game of Life on a torus. Each cell is an object that knows its eight neighbours; 20 generations are one call.
# The versions by hand have bytes and indices in place of objects, except for the untuned one in CUDA. The difference is
# the price of objects.
class Program::Life < Program
  GENERATIONS = 20
  sizes tiny: 6, small: 128, normal: 512, ruby: 100, scaling: [10, 32, 100, 316, 1_000]
  AROUND = [-1, 0, 1].product([-1, 0, 1]).reject { |place| place == [0, 0] }.freeze

  def input(size, random)
    Columns.new.input(:size, :int64, size).input(:generations, :int64, GENERATIONS)
           .input(:neighbours, :int32, Array.new(size * size) { |index| around(index, size) }.flatten(1))
           .output(:alive, :byte, Array.new(size * size) { random.rand < 0.3 ? 1 : 0 })
  end

  def state(input)
    size = input[:size]
    cells = input.fetch(:alive).values.map { |alive| Cell.new(alive == 1) }
    cells.each_with_index { |cell, index| cell.neighbours = cells.values_at(*around(index, size)) }
    [cells, input[:generations]]
  end

  def changes? = true
  def outputs((cells, _), _result) = { alive: cells.map { |cell| cell.alive? ? 1 : 0 } }
  def elements(size) = size * size
  def ratio(size, small) = (size / small.to_f)**2
  def work(input, outputs) = { flops: 10 * input[:generations] * outputs[:alive].size, bytes: 2 * input[:generations] * outputs[:alive].size }

  # The loops in C by hand are vectorised by gcc.
  def targets = { cpu: 0.4, cuda: 0.95 }

  private

  # The numbers of a cell's neighbours.
  def around(index, size)
    row, column = index.divmod(size)
    AROUND.map { |down, right| (row + down) % size * size + (column + right) % size }
  end
end
