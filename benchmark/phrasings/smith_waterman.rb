# frozen_string_literal: true

require_relative "../programs/smith_waterman/model"

class Program::SmithWaterman
  phrasing "flat Arrays, a call for each diagonal over its rows, no guard" do
    def compute((one, other, score))
      (2..one.size + other.size).each do |diagonal|
        first = [diagonal - other.size, 1].max
        last = [diagonal - 1, one.size].min
        (first..last).peach { |row| align(one, other, score, row, diagonal - row) }
      end
    end
  end

  phrasing "flat Arrays, early next, temporaries and if" do
    def compute((one, other, score))
      width = other.size + 1
      (0...one.size).peach(one.size + other.size - 1) do |row|
        column = Ikra.tick - row
        next if column < 0
        next if column >= other.size

        corner = row * width + column
        up = corner + 1
        left = corner + width
        best = score[corner]
        if one[row] == other[column]
          best += MATCH
        else
          best += MISMATCH
        end
        best = 0 if best < 0
        best = score[up] - GAP if score[up] - GAP > best
        best = score[left] - GAP if score[left] - GAP > best
        score[left + 1] = best
      end
    end
  end

  phrasing "flat Arrays, columns, between?, ternaries" do
    def compute((one, other, score))
      width = other.size + 1
      (1..other.size).peach(one.size + other.size - 1) do |column|
        row = Ikra.tick + 2 - column
        if row.between?(1, one.size)
          here = row * width + column
          both = score[here - width - 1] + (one[row - 1] == other[column - 1] ? MATCH : MISMATCH)
          up = score[here - width] - GAP
          left = score[here - 1] - GAP
          gap = up > left ? up : left
          best = both > gap ? both : gap
          score[here] = best > 0 ? best : 0
        end
      end
    end
  end

  phrasing "flat Arrays, a job for a tile of 8 rows, each over Ranges" do
    def compute((one, other, score))
      down = (one.size + 7) / 8
      right = (other.size + 7) / 8
      (0...down).peach(down + right - 1) do |tile|
        across = Ikra.tick - tile
        next unless (0...right).cover?(across)

        (8 * tile + 1..[8 * tile + 8, one.size].min).each do |row|
          (8 * across + 1..[8 * across + 8, other.size].min).each { |column| align(one, other, score, row, column) }
        end
      end
    end
  end

  # A row of scores for each letter, and one of zeros before them.
  module Nested
    def state(input) = [*%i[one other].map { |name| letters(input.fetch(name).values) }, input.fetch(:score).values.each_slice(input.fetch(:other).values.size + 1).to_a]
    def outputs((_, _, rows), _result) = { score: rows.flatten(1) }
    def letters(numbers) = numbers
  end

  phrasing "nested Arrays, max of an Array with a modifier" do
    include Nested

    def compute((one, other, rows))
      (1..one.size).peach(one.size + other.size - 1) do |i|
        j = Ikra.tick - i + 2
        next unless j >= 1 && j <= other.size

        pair = MISMATCH
        pair = MATCH if one[i - 1] == other[j - 1]
        rows[i][j] = [rows[i - 1][j - 1] + pair, rows[i - 1][j] - GAP, rows[i][j - 1] - GAP, 0].max
      end
    end
  end

  phrasing "nested Arrays, Strings of letters, clamp" do
    include Nested

    def letters(numbers) = numbers.map { |number| "ACGT"[number] }.join

    def compute((one, other, rows))
      (0...one.size).peach(one.size + other.size - 1) do |i|
        j = Ikra.tick - i
        if (0...other.size).cover?(j)
          above = rows[i]
          row = rows[i + 1]
          score = above[j] + (one[i] == other[j] ? MATCH : MISMATCH)
          row[j + 1] = score.clamp(([above[j + 1], row[j]].max - GAP)..).clamp(0..)
        end
      end
    end
  end

  # Two sequences of Symbols, and their scores, with methods cut small.
  class Alignment
    attr_reader :one, :other, :rows

    def initialize(one, other, rows)
      @one = one
      @other = other
      @rows = rows
    end

    def step(row, tick)
      column = tick - row
      improve(row, column) if inside?(column)
    end

    def ticks = one.size + other.size - 1

    private

    def inside?(column) = column >= 0 && column < other.size
    def match?(row, column) = one[row] == other[column]
    def pair(row, column) = match?(row, column) ? MATCH : MISMATCH
    def both(row, column) = rows[row][column] + pair(row, column)
    def gap_above(row, column) = rows[row][column + 1] - GAP
    def gap_beside(row, column) = rows[row + 1][column] - GAP
    def larger(one, other) = one < other ? other : one
    def gap(row, column) = larger(gap_above(row, column), gap_beside(row, column))
    def best(row, column) = larger(0, larger(both(row, column), gap(row, column)))
    def improve(row, column) = rows[row + 1][column + 1] = best(row, column)
  end

  phrasing "an object with Symbols, methods cut small" do
    include Nested

    def letters(numbers) = numbers.map { |number| %i[a c g t][number] }

    def compute((one, other, rows))
      alignment = Alignment.new(one, other, rows)
      (0...one.size).peach(alignment.ticks) { |row| alignment.step(row, Ikra.tick) }
    end
  end

  # A letter and the other that it is beside, with the best score of both.
  class Pair
    attr_accessor :score

    def initialize(match)
      @match = match
      @score = 0
    end

    def align(corner, above, beside)
      @score = [0, corner + (@match ? MATCH : MISMATCH), above - GAP, beside - GAP].max
    end
  end

  # The pairs of a letter. It knows those of the letter before it.
  class Row
    attr_reader :pairs

    def initialize(number, pairs, above)
      @number = number
      @pairs = pairs
      @above = above
    end

    def step
      column = Ikra.tick - @number
      return if column < 0 || column >= @pairs.size

      @pairs[column].align(before(@above, column), @above ? @above.pairs[column].score : 0, before(self, column))
    end

    def before(row, column) = row.nil? || column == 0 ? 0 : row.pairs[column - 1].score
  end

  phrasing "rows of objects, a guard against nil, methods" do
    def state(input)
      one, other = %i[one other].map { |name| input.fetch(name).values }
      rows = one.each_with_index.with_object([]) do |(letter, number), all|
        all << Row.new(number, other.map { |opposite| Pair.new(letter == opposite) }, all.last)
      end
      [rows, one.size + other.size - 1]
    end

    def outputs((rows, _), _result) = { score: [0] * (rows[0].pairs.size + 1) + rows.flat_map { |row| [0, *row.pairs.map(&:score)] } }
    def compute((rows, ticks)) = rows.peach(ticks) { |row| row.step }
  end

  phrasing "a new Array for each diagonal, pmap" do
    def changes? = false

    def outputs((one, other, _), diagonals)
      rows = [[0] * (other.size + 1), *one.map { [0] }]
      diagonals.each_with_index { |scores, sum| scores.each_with_index { |score, i| rows[i][sum - i] = score if score && i > 0 && i < sum } }
      { score: rows.flatten(1) }
    end

    # Those of row i are at i, in the diagonal i + j. What is outside of the matrix is nil.
    def compute((one, other, _))
      diagonals = [[0], [0, 0]]
      (2..one.size + other.size).each do |sum|
        corners, gaps = diagonals.last(2)
        diagonals << (0..[sum, one.size].min).pmap do |i|
          j = sum - i
          next if j > other.size
          next 0 if i == 0 || j == 0

          pair = one[i - 1] == other[j - 1] ? MATCH : MISMATCH
          [0, corners[i - 1] + pair, gaps[i - 1] - GAP, gaps[i] - GAP].max
        end
      end
      diagonals
    end
  end

  phrasing "MDArrays of 32 bits, elements by index" do
    def state(input)
      one, other, score = %i[one other score].map { |name| Ikra::MDArray.new(input.fetch(name).values, dtype: :i32) }
      [one, other, score.reshape(one.size + 1, other.size + 1)]
    end

    def outputs((*, score), _result) = { score: score.to_flat_a }

    def compute((one, other, score))
      rows = one.size
      columns = other.size
      (1..rows).peach(rows + columns - 1) do |row|
        column = Ikra.tick - row + 2
        next if column < 1 || column > columns

        pair = one[row - 1] == other[column - 1] ? MATCH : MISMATCH
        score[row, column] = [0, score[row - 1, column - 1] + pair, score[row - 1, column] - GAP, score[row, column - 1] - GAP].max
      end
    end
  end
end
