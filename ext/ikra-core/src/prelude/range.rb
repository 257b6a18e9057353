# frozen_string_literal: true

# Range's own forms of what Enumerable has.
class Range
  def count(item = (all = true))
    return size if all && !block_given?

    n = 0
    each do |x|
      if block_given?
        n += 1 if yield(x)
      elsif x == item
        n += 1
      end
    end
    n
  end
end
