# frozen_string_literal: true

# Solves sudokus by trying what fits and going back where nothing does.
#
#   ruby -Ilib examples/sudoku.rb [puzzles]

require_relative "support/comparison"

module Sudoku
  class Unsolvable < StandardError; end

  class Grid
    attr_reader :digits

    # @param text [String] 81 digits, row by row, with a dot for each empty square
    def initialize(text)
      @digits = text.each_char.map { |char| char == "." ? 0 : char.to_i }
      raise ArgumentError, "a grid has 81 squares, not #{@digits.size}" unless @digits.size == 81
    end

    def solve
      raise Unsolvable, "nothing fits" unless fill

      self
    end

    private

    # Fills the empty square with the fewest candidates, and then all others; false if that is not possible.
    def fill
      square = emptiest or return true

      (1..9).each do |digit|
        next unless fits?(square, digit)

        @digits[square] = digit
        return true if fill
      end
      @digits[square] = 0
      false
    end

    def emptiest
      (0...81).select { |square| @digits[square].zero? }.min_by { |square| (1..9).count { |digit| fits?(square, digit) } }
    end

    def fits?(square, digit)
      row, column = square.divmod(9)
      corner = row / 3 * 27 + column / 3 * 3
      (0...9).none? do |i|
        @digits[row * 9 + i] == digit || @digits[i * 9 + column] == digit || @digits[corner + i / 3 * 9 + i % 3] == digit
      end
    end
  end

  PUZZLES = %w[
    53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79
    4.....8.5.3..........7......2.....6.....8.4......1.......6.3.7.5..2.....1.4......
    85...24..72......9..4.........1.7..23.5...9...4...........8..7..17..........36.4.
    ..53.....8......2..7..1.5..4....53...1..7...6..32...8..6.5....9..4....3......97..
    12..4......5.69.1...9...5.........7.7...52.9..3......2.9.6...5.4..9..8.1..3...9.4
  ].freeze

  # The same puzzle with its digits exchanged.
  def self.puzzles(count, random: Random.new(23))
    Array.new(count) { |i| PUZZLES[i % PUZZLES.size].tr("123456789", (1..9).to_a.shuffle(random: random).join) }
  end

  # The digits of each solution, or nil where there is none.
  def self.run(count)
    puzzles(count).pmap do |text|
      Grid.new(text).solve.digits
    rescue Unsolvable
      nil
    end
  end
end

if $PROGRAM_NAME == __FILE__
  solutions = Comparison.run(100) { |count| Sudoku.run(count) }
  puts "#{solutions.compact.size} of #{solutions.size} are solved. The first:"
  solutions.first.each_slice(9) { |row| puts row.each_slice(3).map { |three| three.join(" ") }.join("  ") }
end
