# frozen_string_literal: true

class Program::Sum
  def state(input) = Ikra::MDArray.new(input[:x])

  def compute(floats)
    floats.sum
  end
end
