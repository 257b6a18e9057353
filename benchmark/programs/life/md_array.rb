# frozen_string_literal: true

class Program::Life
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
    world
  end
end
