# frozen_string_literal: true

class Sum
  def compute(floats)
    floats.reduce { |a, b| a + b }
  end
end
