# frozen_string_literal: true

class Program::Map
  def compute(floats)
    floats.map { |x| x * 0.999 + 0.5 }
  end
end
