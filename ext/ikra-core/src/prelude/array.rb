# frozen_string_literal: true

# Array's own forms of what Enumerable has, by index.
class Array
  def count(item = (all = true))
    if block_given?
      n = 0
      each { |x| n += 1 if yield(x) }
      n
    elsif all
      size
    else
      n = 0
      each { |x| n += 1 if x == item }
      n
    end
  end

  def index(item = (none = true))
    i = 0
    while i < size
      if none
        return i if yield(__at(i))
      elsif __at(i) == item
        return i
      end
      i += 1
    end
    nil
  end

  def find_index(item = (none = true))
    i = 0
    while i < size
      if none
        return i if yield(__at(i))
      elsif __at(i) == item
        return i
      end
      i += 1
    end
    nil
  end

  def rindex(item = (none = true))
    i = size - 1
    while i >= 0
      if none
        return i if yield(__at(i))
      elsif __at(i) == item
        return i
      end
      i -= 1
    end
    nil
  end

  def include?(item)
    i = 0
    while i < size
      return true if __at(i) == item

      i += 1
    end
    false
  end

  def member?(item)
    i = 0
    while i < size
      return true if __at(i) == item

      i += 1
    end
    false
  end

  def min
    return nil if __doubt(size == 0)

    best = __at(0)
    i = 1
    while i < size
      x = __at(i)
      if block_given?
        best = x if __order(yield(x, best), x, best) < 0
      elsif best.is_a?(Float) && x.is_a?(Float)
        # Ruby asks the least so far here, which its message tells
        best = x if best.__above?(x)
      elsif x.__below?(best)
        best = x
      end
      i += 1
    end
    best
  end

  def max
    return nil if __doubt(size == 0)

    best = __at(0)
    i = 1
    while i < size
      x = __at(i)
      if block_given?
        best = x if __order(yield(x, best), x, best) > 0
      elsif best.is_a?(Float) && x.is_a?(Float)
        # Ruby asks the greatest so far here, which its message tells
        best = x if best.__below?(x)
      elsif x.__above?(best)
        best = x
      end
      i += 1
    end
    best
  end

  def min_by
    return nil if __doubt(size == 0)

    best = __at(0)
    least = yield(best)
    i = 1
    while i < size
      x = __at(i)
      v = yield(x)
      if v.__below?(least)
        best = x
        least = v
      end
      i += 1
    end
    best
  end

  def max_by
    return nil if __doubt(size == 0)

    best = __at(0)
    greatest = yield(best)
    i = 1
    while i < size
      x = __at(i)
      v = yield(x)
      if v.__above?(greatest)
        best = x
        greatest = v
      end
      i += 1
    end
    best
  end

  def inject(start = (none = true))
    if none
      return nil if __doubt(size == 0)

      memo = __at(0)
      i = 1
    else
      memo = start
      i = 0
    end
    while i < size
      memo = yield(memo, __at(i))
      i += 1
    end
    memo
  end

  def reduce(start = (none = true))
    if none
      return nil if __doubt(size == 0)

      memo = __at(0)
      i = 1
    else
      memo = start
      i = 0
    end
    while i < size
      memo = yield(memo, __at(i))
      i += 1
    end
    memo
  end

  def cycle(times = (endless = true))
    if endless
      while size > 0
        each { |x| yield(x) }
      end
    else
      n = 0
      while n < times
        each { |x| yield(x) }
        n += 1
      end
    end
    nil
  end
end
