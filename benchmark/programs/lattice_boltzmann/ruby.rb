# frozen_string_literal: true

require_relative "model"

class Program::LatticeBoltzmann
  def compute((fluid, steps, flows, others))
    steps.times do
      fluid.cells.times { |cell| fluid.flow(cell, flows, others) }
      flows, others = others, flows
    end
  end
end
