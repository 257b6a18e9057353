# frozen_string_literal: true

require_relative "model"

class Program::Sph
  def compute((particles, steps, seconds))
    steps.times do
      particles.each { |particle| particle.weigh }
      particles.each { |particle| particle.push }
      particles.each { |particle| particle.move(seconds) }
    end
  end
end
