# frozen_string_literal: true

require_relative "model"

class Program::Sph
  # A step is three ticks. All of it is one call.
  def compute((particles, steps, seconds))
    particles.peach(3 * steps) do |particle|
      case Ikra.tick % 3
      when 0 then particle.weigh
      when 1 then particle.push
      else particle.move(seconds)
      end
    end
  end
end
