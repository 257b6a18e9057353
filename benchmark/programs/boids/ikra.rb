# frozen_string_literal: true

require_relative "model"

class Program::Boids
  # Birds decide in even ticks, and fly in odd ones. All of it is one call.
  def compute((flock, steps, field))
    flock.peach(2 * steps) { |bird| Ikra.tick.even? ? bird.decide(flock, field) : bird.fly }
  end
end
