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

  def map
    out = __buffer(size)
    i = 0
    while i < size
      out.__put(i, yield(__at(i)))
      i += 1
    end
    out
  end

  def collect
    map { |x| yield(x) }
  end

  def map!
    i = 0
    while i < size
      self[i] = yield(__at(i))
      i += 1
    end
    self
  end

  def collect!
    map! { |x| yield(x) }
  end

  def select
    out = __buffer(size)
    n = 0
    i = 0
    while i < size
      x = __at(i)
      if yield(x)
        out.__put(n, x)
        n += 1
      end
      i += 1
    end
    out.__take(n)
  end

  def filter
    select { |x| yield(x) }
  end

  def find_all
    select { |x| yield(x) }
  end

  def reject
    select { |x| !yield(x) }
  end

  def filter_map
    out = __buffer(size)
    n = 0
    i = 0
    while i < size
      y = yield(__at(i))
      if y
        out.__put(n, y)
        n += 1
      end
      i += 1
    end
    out.__take(n)
  end

  def compact
    out = __buffer(size)
    n = 0
    i = 0
    while i < size
      x = __at(i)
      unless x.nil?
        out.__put(n, x)
        n += 1
      end
      i += 1
    end
    out.__take(n)
  end

  def partition
    yes = __buffer(size)
    no = __buffer(size)
    n = 0
    m = 0
    i = 0
    while i < size
      x = __at(i)
      if yield(x)
        yes.__put(n, x)
        n += 1
      else
        no.__put(m, x)
        m += 1
      end
      i += 1
    end
    [yes.__take(n), no.__take(m)]
  end

  def reverse
    out = __buffer(size)
    i = 0
    while i < size
      out.__put(size - 1 - i, __at(i))
      i += 1
    end
    out
  end

  def rotate(by = 1)
    out = __buffer(size)
    i = 0
    while i < size
      out.__put(i, __at((i + by) % size))
      i += 1
    end
    out
  end

  def to_a
    self
  end

  def to_ary
    self
  end

  def entries
    __slice(0, size)
  end

  def dup
    __slice(0, size)
  end

  def clone
    __slice(0, size)
  end

  # A new array of `count` elements from `from` on; all of them are there.
  def __slice(from, count)
    out = __buffer(count)
    i = 0
    while i < count
      out.__put(i, __at(from + i))
      i += 1
    end
    out
  end

  def take(count)
    raise ArgumentError, "attempt to take negative size" if count < 0
    __slice(0, count < size ? count : size)
  end

  def drop(count)
    raise ArgumentError, "attempt to drop negative size" if count < 0
    count < size ? __slice(count, size - count) : __slice(0, 0)
  end

  def first(count)
    raise ArgumentError, "negative array size (or size too big)" if count < 0
    __slice(0, count < size ? count : size)
  end

  def last(count)
    raise ArgumentError, "negative array size" if count < 0
    count < size ? __slice(size - count, count) : __slice(0, size)
  end

  def take_while
    i = 0
    i += 1 while i < size && yield(__at(i))
    __slice(0, i)
  end

  def drop_while
    i = 0
    i += 1 while i < size && yield(__at(i))
    __slice(i, size - i)
  end

  def +(other)
    __needs_array(other) unless other.is_a?(Array)
    out = __buffer(size + other.size)
    i = 0
    while i < size
      out.__put(i, __at(i))
      i += 1
    end
    j = 0
    while j < other.size
      out.__put(i + j, other.__at(j))
      j += 1
    end
    out
  end

  def -(other)
    __needs_array(other) unless other.is_a?(Array)
    select { |x| !other.include?(x) }
  end

  def difference(other)
    __needs_array(other) unless other.is_a?(Array)
    select { |x| !other.include?(x) }
  end

  def *(other)
    raise ArgumentError, "argument must be non-negative" if other < 0
    out = __buffer(size * other)
    i = 0
    while i < size * other
      out.__put(i, __at(i % size))
      i += 1
    end
    out
  end

  def &(other)
    __needs_array(other) unless other.is_a?(Array)
    out = __buffer(size)
    n = 0
    i = 0
    while i < size
      x = __at(i)
      if other.include?(x) && !out.__before?(x, n)
        out.__put(n, x)
        n += 1
      end
      i += 1
    end
    out.__take(n)
  end

  def |(other)
    __needs_array(other) unless other.is_a?(Array)
    out = __buffer(size + other.size)
    n = 0
    each do |x|
      unless out.__before?(x, n)
        out.__put(n, x)
        n += 1
      end
    end
    other.each do |x|
      unless out.__before?(x, n)
        out.__put(n, x)
        n += 1
      end
    end
    out.__take(n)
  end

  # Whether one of the first `count` elements is eql? to it.
  def __before?(item, count)
    i = 0
    while i < count
      return true if __at(i).eql?(item)

      i += 1
    end
    false
  end

  def uniq
    out = __buffer(size)
    n = 0
    if block_given?
      keys = __buffer(size)
      each do |x|
        key = yield(x)
        unless keys.__before?(key, n)
          keys.__put(n, key)
          out.__put(n, x)
          n += 1
        end
      end
    else
      each do |x|
        unless out.__before?(x, n)
          out.__put(n, x)
          n += 1
        end
      end
    end
    out.__take(n)
  end

  def zip(other, third = (two = true))
    if block_given?
      i = 0
      while i < size
        if two
          yield([__at(i), other[i]])
        else
          yield([__at(i), other[i], third[i]])
        end
        i += 1
      end
      nil
    elsif two
      __map_index { |i| [__at(i), other[i]] }
    else
      __map_index { |i| [__at(i), other[i], third[i]] }
    end
  end

  def __map_index
    out = __buffer(size)
    i = 0
    while i < size
      out.__put(i, yield(i))
      i += 1
    end
    out
  end

  def product(other)
    __needs_array(other) unless other.is_a?(Array)
    out = __buffer(size * other.size)
    i = 0
    while i < size * other.size
      out.__put(i, [__at(i / other.size), other.__at(i % other.size)])
      i += 1
    end
    out
  end

  def transpose
    return __slice(0, 0) if __doubt(size == 0)

    first = __at(0)
    first.__map_index { |i| __map_index { |j| __at(j)[i] } }
  end

  def each_slice(count)
    raise ArgumentError, "invalid slice size" if count <= 0
    i = 0
    while i < size
      yield(__slice(i, i + count < size ? count : size - i))
      i += count
    end
    self
  end

  def each_cons(count)
    raise ArgumentError, "invalid size" if count <= 0
    i = 0
    while i + count <= size
      yield(__slice(i, count))
      i += 1
    end
    self
  end

  def minmax
    [min, max]
  end

  # One level, which is all that most arrays have.
  def flatten(levels = -1)
    n = 0
    each { |x| n += x.is_a?(Array) ? x.size : 1 }
    out = __buffer(n)
    n = 0
    each do |x|
      if x.is_a?(Array)
        x.each do |y|
          __one_level(y) if levels != 1
          out.__put(n, y)
          n += 1
        end
      else
        out.__put(n, x)
        n += 1
      end
    end
    out
  end

  def flat_map
    parts = map { |x| yield(x) }
    n = 0
    parts.each { |x| n += x.size }
    out = __buffer(n)
    n = 0
    parts.each do |x|
      x.each do |y|
        out.__put(n, y)
        n += 1
      end
    end
    out
  end

  def fill(item)
    i = 0
    while i < size
      self[i] = item
      i += 1
    end
    self
  end

  # Stable, as Ruby's is where the C library sorts by merging.
  def sort
    if block_given?
      __merge_sort { |a, b| __order(yield(a, b), a, b) > 0 }
    else
      __merge_sort { |a, b| a.__above?(b) }
    end
  end

  # The block tells whether its first is to come after its second.
  def __merge_sort
    from = __slice(0, size)
    to = __buffer(size)
    width = 1
    while width < size
      i = 0
      while i < size
        left = i
        middle = i + width < size ? i + width : size
        right = middle
        last = middle + width < size ? middle + width : size
        while i < last
          if left < middle && (right >= last || !yield(from.__at(left), from.__at(right)))
            to.__put(i, from.__at(left))
            left += 1
          else
            to.__put(i, from.__at(right))
            right += 1
          end
          i += 1
        end
      end
      from, to = to, from
      width *= 2
    end
    from
  end

  def sort_by
    keys = map { |x| yield(x) }
    order = (0...size).map { |i| i }
    order.__merge_sort { |a, b| keys.__at(a).__above?(keys.__at(b)) }.map { |i| __at(i) }
  end

  def slice(from, count = (one = true))
    if one
      if from.is_a?(Integer)
        self[from]
      else
        first = from.begin
        last = from.end
        first += size if first < 0
        last += size if last < 0
        last -= 1 if from.exclude_end?
        return nil if __doubt(first < 0 || first > size)

        last = size - 1 if last >= size
        __slice(first, last < first ? 0 : last - first + 1)
      end
    else
      from += size if from < 0
      return nil if __doubt(from < 0 || from > size || count < 0)

      __slice(from, from + count > size ? size - from : count)
    end
  end

  def __map_with_index(start = 0)
    __map_index { |i| yield(__at(i), i + start) }
  end

  def __collect_with_index(start = 0)
    __map_index { |i| yield(__at(i), i + start) }
  end

  def __each_with_index(start = 0)
    i = 0
    while i < size
      yield(__at(i), i + start)
      i += 1
    end
    self
  end

  def __reverse_each_with_index(start = 0)
    i = start - 1
    reverse_each { |x| yield(x, i += 1) }
  end

  def __select_with_index(start = 0)
    i = start - 1
    select { |x| yield(x, i += 1) }
  end

  def __filter_with_index(start = 0)
    i = start - 1
    select { |x| yield(x, i += 1) }
  end

  def __reject_with_index(start = 0)
    i = start - 1
    select { |x| !yield(x, i += 1) }
  end

  def __filter_map_with_index(start = 0)
    i = start - 1
    filter_map { |x| yield(x, i += 1) }
  end

  def __flat_map_with_index(start = 0)
    i = start - 1
    flat_map { |x| yield(x, i += 1) }
  end

  # What iterators without a block give one after the other.
  def __list_each
    self
  end

  def __list_each_entry
    self
  end

  def __list_each_index
    __map_index { |i| i }
  end

  def __list_reverse_each
    reverse
  end

  def __list_each_with_index
    __map_index { |i| [__at(i), i] }
  end

  def __list_with_index(start = 0)
    __map_index { |i| [__at(i), i + start] }
  end

  def __list_each_slice(count)
    raise ArgumentError, "invalid slice size" if count <= 0

    (0...((size + count - 1) / count)).map { |i| __slice(i * count, (i + 1) * count < size ? count : size - (i * count)) }
  end

  def __list_each_cons(count)
    raise ArgumentError, "invalid size" if count <= 0

    (0..(size - count)).map { |i| __slice(i, count) }
  end

  def __splat
    __slice(0, size)
  end

  def __rest(from, back)
    count = size - from - back
    count > 0 ? __slice(from, count) : __slice(0, 0)
  end
end
