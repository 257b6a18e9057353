# frozen_string_literal: true

class Program::Sum
  def compute(floats)
    floats.preduce { |a, b| a + b }
  end
end
