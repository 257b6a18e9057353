# frozen_string_literal: true

require_relative "model"

class Program::Nbody
  # Stars look in even ticks, and move in odd ones. All of it is one call.
  def compute((stars, steps, seconds))
    stars.peach(2 * steps) do |star|
      Ikra.tick.even? ? star.attract(stars, seconds) : star.move(seconds)
    end
  end
end
