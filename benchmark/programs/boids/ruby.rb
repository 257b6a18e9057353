# frozen_string_literal: true

require_relative "model"

class Program::Boids
  def compute((flock, steps, field))
    steps.times do
      flock.each { |bird| bird.decide(flock, field) }
      flock.each { |bird| bird.fly }
    end
  end
end
