# frozen_string_literal: true

require_relative "model"

class Program::LatticeBoltzmann
  # A tick is a step: from flows to others in even ones, back in odd ones. All of it is one call.
  def compute((fluid, steps, flows, others))
    (0...fluid.cells).peach(steps) do |cell|
      Ikra.tick.even? ? fluid.flow(cell, flows, others) : fluid.flow(cell, others, flows)
    end
  end
end
