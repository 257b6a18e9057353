# frozen_string_literal: true

# Text of Floats.
class Float
  def to_s
    return "NaN".__coded(3, 3) if nan?
    return self > 0.0 ? "Infinity".__coded(8, 3) : "-Infinity".__coded(9, 3) if infinite?

    text = __string(24)
    n = text.__fill_float(self, __powers)
    text.__coded(n, 3)
  end

  alias inspect to_s
end
