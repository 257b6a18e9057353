# Constants are found in the scopes around, then in ancestors.
#
# elements = [1, 2]
# gives: [2024, 2025]

LIMIT = 1000

module Outer
  LIMIT = 10

  class Base
    STEP = 3
  end

  class Inner < Base
    def self.sum(x) = x + LIMIT + STEP + ::LIMIT
  end
end

elements.pmap { |x| Outer::Inner.sum(x) + Outer::LIMIT + LIMIT }
