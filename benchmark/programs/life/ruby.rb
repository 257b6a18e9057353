# frozen_string_literal: true

require_relative "model"

class Program::Life
  def compute((cells, generations))
    generations.times do
      cells.each { |cell| cell.look }
      cells.each { |cell| cell.become }
    end
  end
end
