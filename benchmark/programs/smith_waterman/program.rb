# frozen_string_literal: true

# Local alignment of two sequences (Smith and Waterman): the best score that ends at each pair of letters. Pairs of one
# diagonal of the matrix depend only on the two diagonals before it. All diagonals are one call.
class Program::SmithWaterman < Program
  MATCH = 3
  MISMATCH = -2
  GAP = 2
  sizes tiny: 9, small: 500, normal: 3_000, ruby: 500, scaling: [10, 32, 100, 316, 1_000, 3_162]

  # Sequences of four letters, of which the second is the first with changes. The first row and column are zeros.
  def input(size, random)
    one = Array.new(size) { random.rand(4) }
    other = one.map { |letter| random.rand < 0.7 ? letter : random.rand(4) }
    Columns.new.input(:one, :int32, one).input(:other, :int32, other).output(:score, :int32, [0] * (size + 1)**2)
  end

  def state(input) = [*%i[one other].map { |name| input.fetch(name).values }, input.fetch(:score).values.dup]
  def changes? = true
  def outputs((*, score), _result) = { score: score }
  def elements(size) = size * size
  def ratio(size, small) = (size / small.to_f)**2
  def work(input, _outputs) = { flops: 7 * input.fetch(:one).values.size**2, bytes: 4 * input.fetch(:one).values.size**2 }
end
