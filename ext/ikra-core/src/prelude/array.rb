# frozen_string_literal: true

# Array's own forms of what Enumerable has, by index.
class Array
  def any?
    i = 0
    while i < size
      return true if yield(__at(i))

      i += 1
    end
    false
  end
end
