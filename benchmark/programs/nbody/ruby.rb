# frozen_string_literal: true

require_relative "model"

class Program::Nbody
  def compute((stars, steps, seconds))
    steps.times do
      stars.each { |star| star.attract(stars, seconds) }
      stars.each { |star| star.move(seconds) }
    end
  end
end
