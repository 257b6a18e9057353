# frozen_string_literal: true

class Program::SmithWaterman
  # The best score of an alignment that ends with these letters; 0 where it is better to begin anew.
  def align(one, other, score, row, column)
    width = other.size + 1
    here = row * width + column
    pair = one[row - 1] == other[column - 1] ? MATCH : MISMATCH
    score[here] = [0, score[here - width - 1] + pair, score[here - width] - GAP, score[here - 1] - GAP].max
  end
end
