# frozen_string_literal: true

require_relative "model"

class Program::Life
  # Cells look in even ticks, and change in odd ones. All of it is one call.
  def compute((cells, generations))
    cells.peach(2 * generations) { |cell| Ikra.tick.even? ? cell.look : cell.become }
  end
end
