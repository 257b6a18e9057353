# frozen_string_literal: true

class Sum
  def compute(floats)
    floats.preduce { |a, b| a + b }
  end
end
