# frozen_string_literal: true

# Conway's Game of Life, each cell an object that knows its neighbours.
#
#   ruby -Ilib examples/life.rb [cells on a side]

require_relative "support/comparison"
require_relative "support/png"

module Life
  class Cell
    attr_accessor :neighbours

    def initialize(alive)
      @alive = alive
      @neighbours = []
    end

    def alive? = @alive

    # Computes the next state of this cell from its neighbours.
    def look
      @fate = case neighbours.count(&:alive?)
              when 3 then :lives
              when 2 then @alive ? :lives : :dies
              else :dies
      end
    end

    def become
      @alive = @fate == :lives
    end
  end

  class World
    AROUND = [-1, 0, 1].product([-1, 0, 1]).reject { |place| place == [0, 0] }.freeze

    attr_reader :cells

    def initialize(size, random: Random.new(7))
      @size = size
      @cells = Array.new(size * size) { Cell.new(random.rand < 0.3) }
      @cells.each_with_index do |cell, index|
        row, column = index.divmod(size)
        cell.neighbours = AROUND.map { |down, right| at(row + down, column + right) }
      end
    end

    def at(row, column) = @cells[row % @size * @size + column % @size]

    def live(generations)
      generations.times do
        @cells.peach(&:look)
        @cells.peach(&:become)
      end
    end

    def to_a = @cells.map(&:alive?).each_slice(@size).to_a
  end

  # Which cells are alive in the end, row by row.
  def self.run(size, generations: 50)
    world = World.new(size)
    world.live(generations)
    world.to_a
  end
end

if $PROGRAM_NAME == __FILE__
  rows = Comparison.run(200) { |size| Life.run(size) }
  puts "#{rows.flatten.count(true)} of #{rows.flatten.size} cells are alive."
  big = rows.flat_map { |row| [row.flat_map { |alive| [alive ? [255, 194, 71] : [13, 18, 32]] * 4 }] * 4 }
  PNG.write("life.png", big)
end
