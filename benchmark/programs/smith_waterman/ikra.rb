# frozen_string_literal: true

require_relative "model"

class Program::SmithWaterman
  # A tick is a diagonal, from the upper left corner to the lower right one.
  def compute((one, other, score))
    (1..one.size).peach(one.size + other.size - 1) do |row|
      column = Ikra.tick - row + 2
      align(one, other, score, row, column) if column >= 1 && column <= other.size
    end
  end
end
