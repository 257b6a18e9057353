# frozen_string_literal: true

require_relative "model"

class Program::Life
  # Even ticks are for looking, odd ones for becoming: all of it is one call.
  def compute((cells, generations))
    cells.peach(2 * generations) { |cell| Ikra.tick.even? ? cell.look : cell.become }
  end
end
