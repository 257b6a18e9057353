# frozen_string_literal: true

# Difficult numbers.
module Values
  MAX = (2**63) - 1
  MIN = -(2**63)

  INTEGERS = [0, 1, -1, 2, -2, 3, -7, 10, 63, 64, -64, 255, (2**31) - 1, -(2**31), 2**32, (2**53) + 1, -(2**53) - 1, 2**62, MAX, MIN, MIN + 1].freeze
  SMALL = [0, 1, -1, 2, -2, 3, -3, 7, -7, 10, 64, -100].freeze

  FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.1, 3.7, -3.7, 1e-320, 5e-324, 2.0**52, (2.0**53) + 2, 2.0**62, 1e300, -1e300,
    Float::MAX, Float::MIN, Float::EPSILON, Float::INFINITY, -Float::INFINITY, Float::NAN
  ].freeze

  class << self
    # All pairs of numbers out of a list.
    def pairs(left, right = left) = left.product(right)
  end
end
