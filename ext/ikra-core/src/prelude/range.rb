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

  def inject(start = (none = true))
    i = first
    if none
      return nil if __doubt(size == 0)

      memo = i
      i += 1
    else
      memo = start
    end
    n = first + size
    while i < n
      memo = yield(memo, i)
      i += 1
    end
    memo
  end

  def reduce(start = (none = true))
    i = first
    if none
      return nil if __doubt(size == 0)

      memo = i
      i += 1
    else
      memo = start
    end
    n = first + size
    while i < n
      memo = yield(memo, i)
      i += 1
    end
    memo
  end
end
