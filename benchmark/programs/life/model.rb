# frozen_string_literal: true

class Program::Life
  class Cell
    attr_writer :neighbours

    def initialize(alive)
      @alive = alive
      @fate = alive
    end

    def alive? = @alive

    # Computes the next state of this cell from its neighbours.
    def look
      around = @neighbours.count { |cell| cell.alive? }
      @fate = around == 3 || (around == 2 && @alive)
    end

    def become
      @alive = @fate
    end
  end
end
