# frozen_string_literal: true

class Program::Sum
  def compute(floats)
    floats.reduce { |a, b| a + b }
  end
end
