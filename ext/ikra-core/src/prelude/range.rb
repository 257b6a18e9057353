# frozen_string_literal: true

# Range's own forms of what Enumerable has, where its size is worth knowing. Methods that begin with __ and are no list
# are of Ranges that are objects, whose ends may be any numbers, or nil.
class Range
  def __covers(value)
    from = __begin
    to = __end
    unless from.nil?
      __cover_form if value.is_a?(Complex)
      order = from.__asked <=> value
      return false if order.nil? || order > 0
    end
    return true if to.nil?

    __cover_form if value.is_a?(Complex)
    # none of these is comparable with a number
    return false if value.nil? || value.is_a?(String) || value.is_a?(Symbol)
    return false if value.is_a?(Array) || value.is_a?(Module)

    order = value.__asked <=> to
    return false if order.nil?

    __exclude_end ? order.__asked < 0 : !(order.__asked > 0)
  end

  def __includes(value)
    return __covers(value) unless __begin.nil? && __end.nil?

    nil.__not_iterated unless __ruby_asks_bounds
    value.is_a?(Numeric) || (raise TypeError, "cannot determine inclusion in beginless/endless ranges")
  end

  def __cover(value)
    value.is_a?(Range) ? __cover_range(value) : __covers(value)
  end

  def __cover_any(value)
    value.is_a?(Range) ? __cover_range(value) : cover?(value)
  end

  # Whether it has all that another has. An exclusive one of Integers may end behind it, if what it has does not.
  def __cover_range(other)
    from = self.begin
    to = self.end
    first = other.begin
    last = other.end
    return false if !to.nil? && last.nil? || !from.nil? && first.nil?
    return false if !first.nil? && !last.nil? && (other.exclude_end? ? first >= last : first > last)
    return false if !first.nil? && !from.nil? && first < from
    return false if !first.nil? && !to.nil? && (exclude_end? ? first >= to : first > to)
    return !(last.nil? && exclude_end? && !other.exclude_end?) if to.nil?
    return to >= last if exclude_end? == other.exclude_end?
    return to > last if exclude_end?

    to >= last || first.is_a?(Integer) && last.is_a?(Integer) && to >= last - 1
  end

  def __first(count = (alone = true))
    return __begin if alone

    from = __begin
    to = __end
    length = __int(count)
    length.__negative_size if length < 0

    list = (0...length).map { |i| from + i }
    return list if to.nil?

    __exclude_end ? list.take_while { |x| x < to } : list.take_while { |x| x <= to }
  end

  # Of Ranges of Integers with so many, and of all others. Ruby looks at the Range first, and then at the arguments.
  def min(count = (one = true), *more)
    least = self.begin
    greatest = self.end
    raise RangeError, "cannot get the minimum of beginless range" if least.nil?

    if block_given?
      raise RangeError, "cannot get the minimum of endless range with custom comparison method" if greatest.nil?
      raise ArgumentError, "wrong number of arguments (given #{more.size + 1}, expected 0..1)" if more.size > 0

      if least.is_a?(Float)
        return [] if !one && !count.nil? && __extremes_count(count) == 0
        raise TypeError, "can't iterate from Float"
      end
      return to_a.min { |a, b| yield(a, b) } if one || count.nil?

      return __sought(count).min(count) { |a, b| yield(a, b) }
    end
    unless one
      raise ArgumentError, "wrong number of arguments (given #{more.size + 1}, expected 1)" if more.size > 0

      if least.is_a?(Float)
        length = __int(count)
        length.__negative_size if length < 0
        raise TypeError, "can't iterate from Float"
      end
      return __first(count) if greatest.nil?

      return first(count)
    end
    return least if greatest.nil?

    least > greatest || exclude_end? && least == greatest ? nil : least
  end

  def max(count = (one = true), *more)
    least = self.begin
    greatest = self.end
    raise RangeError, "cannot get the maximum of endless range" if greatest.nil?

    if block_given? || !one
      if least.nil?
        raise RangeError, "cannot get the maximum of beginless range with custom comparison method"
      end
      raise ArgumentError, "wrong number of arguments (given #{more.size + 1}, expected 0..1)" if more.size > 0

      if least.is_a?(Float)
        return [] if !one && !count.nil? && __extremes_count(count) == 0
        raise TypeError, "can't iterate from Float"
      end
      return block_given? ? to_a.max { |a, b| yield(a, b) } : to_a.max if one || count.nil?

      return block_given? ? __sought(count).max(count) { |a, b| yield(a, b) } : __sought(count).max(count)
    end
    return nil if !least.nil? && least > greatest

    if exclude_end?
      raise TypeError, "cannot exclude non Integer end value" unless greatest.is_a?(Integer)
      return nil if !least.nil? && least == greatest
      raise TypeError, "cannot exclude end value with non Integer begin value" unless least.is_a?(Integer)

      return greatest - 1
    end
    greatest
  end

  def minmax
    return to_a.minmax { |a, b| yield(a, b) } if block_given?

    # Ruby asks for the greatest first
    greatest = max
    [min, greatest]
  end

  def last(count)
    raise TypeError, "can't iterate from Float" if self.begin.is_a?(Float)

    n = size
    lost = __ruby_loses_single && self.begin == self.end
    return __build(0) { |i| self.begin + i } if n == 0 || lost

    length = __int(count)
    raise ArgumentError, "negative array size" if length < 0

    length = n if length > n
    from = self.begin + (n - length)
    __build(length) { |i| from + i }
  end

  def first(count)
    n = __int(count)
    raise ArgumentError, "negative array size (or size too big)" if n < 0
    raise TypeError, "can't iterate from Float" if self.begin.is_a?(Float)

    from = self.begin
    __build(n < size ? n : size) { |i| from + i }
  end

  def __endless
    i = __begin
    while true
      yield i
      i += 1
    end
  end

  def __same_range(other)
    return false unless other.is_a?(Range)

    exclude_end? == other.exclude_end? && self.begin == other.begin && self.end == other.end
  end

  def __compare_range(other)
    __same_range(other) ? 0 : nil
  end

  def __eql_range(other)
    return false unless other.is_a?(Range)

    exclude_end? == other.exclude_end? && self.begin.eql?(other.begin) && self.end.eql?(other.end)
  end

  def count(item = (all = true))
    return size if all && !block_given?

    n = 0
    each do |x|
      if all
        n += 1 if yield(x)
      elsif x.__asked == item
        n += 1
      end
    end
    n
  end

  # Of two Integers Ruby knows the sum, and coerces it and the start, as `+` of a number does.
  def sum(start = 0)
    if block_given?
      __sum(start) { |x| yield(x) }
    elsif start.is_a?(Integer) || start.is_a?(Float) || self.begin.is_a?(Float)
      __sum(start)
    elsif size == 0
      start
    elsif start.is_a?(Rational)
      start.to_f + __sum(0)
    else
      Float(start) + __sum(0)
    end
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
  alias reduce inject

  def map
    from = first
    __build(size) { |i| yield(from + i) }
  end
  alias collect map

  def to_a
    map { |x| x }
  end
  alias entries to_a
  alias __splat to_a

  # what a number's == asks
  def __equals(_number)
    false
  end

  def __clamps(number)
    least = self.begin
    greatest = self.end
    raise ArgumentError, "cannot clamp with an exclusive range" if exclude_end? && !greatest.nil?

    number.clamp(least, greatest)
  end

  def bsearch
    if first.is_a?(Float)
      return __bsearch_floats(first, self.end, exclude_end?) { |x| yield(x) }
    else
      __bsearch_between(first, self.end, exclude_end?) { |i| yield(i) }
    end
  end

  # Of Ranges that have an end of another kind, or none.
  def __bsearch
    from = __begin
    to = __end
    if from.is_a?(Float) || to.is_a?(Float)
      low = from.nil? ? -Float::INFINITY : from.to_f
      high = to.nil? ? Float::INFINITY : to.to_f
      return __bsearch_floats(low, high, __exclude_end) { |x| yield(x) }
    elsif to.nil?
      raise TypeError, "can't do binary search for NilClass" if from.nil?

      step = 1
      while true
        i = from + step
        side = __side(yield(i))
        return i if side == 0
        return __bsearch_between(from, i, false) { |j| yield(j) } if side < 0

        step *= 2
      end
    else
      step = -1
      while true
        i = to + step
        side = __side(yield(i))
        return i if side == 0
        return __bsearch_between(i, to, false) { |j| yield(j) } if side > 0

        step *= 2
      end
    end
  end

  def __bsearch_between(low, high, exclusive)
    high -= 1 if exclusive
    last = high
    answer = low
    found = false
    while low < high
      middle = (low < 0) == (high < 0) ? low + (high - low) / 2 : (low + high) / 2
      side = __side(yield(middle))
      return middle if side == 0

      if side == -2
        found = true
        answer = middle
      end
      if side < 0
        high = middle
      else
        low = middle + 1
      end
    end
    if low == last
      side = __side(yield(low))
      return low if side == 0

      if side == -2
        found = true
        answer = low
      end
      return nil if __doubt(side > 0)
    end
    return nil if __doubt(!found)

    answer
  end

  # Of Floats Ruby halves the numbers of their places among all Floats.
  def __bsearch_floats(from, to, exclusive)
    low = from.__place
    high = to.__place
    at = __bsearch_between(low, high, exclusive) { |i| yield(i.__float_at) }
    at.nil? ? nil : at.__float_at
  end

  # What `zip` takes from its argument.
  def __nth(at)
    at < size ? first + at : nil
  end

  def __list_step(by = 1)
    by = __int(by) unless by.nil? || by.is_a?(Numeric)
    out = []
    if by < 0
      i = self.begin
      to = self.end
      while exclude_end? ? i > to : i >= to
        out << i
        i += by
      end
    else
      step(by) { |x| out << x }
    end
    out
  end

  def __step_size(by = 1)
    __list_step(by).size
  end

  def __unwritten?
    true
  end
end
