# frozen_string_literal: true

# Array's own forms of what Enumerable has, by index.
class Array
  def count(item = (all = true))
    if all
      return size unless block_given?

      n = 0
      each { |x| n += 1 if yield(x) }
    else
      n = 0
      each { |x| n += 1 if x.__asked == item }
    end
    n
  end

  def index(item = (none = true))
    i = 0
    while i < size
      if none
        return i if yield(__at(i))
      elsif __at(i).__asked == item
        return i
      end
      i += 1
    end
    nil
  end
  alias find_index index

  def rindex(item = (none = true))
    i = size - 1
    while i >= 0
      if none
        return i if yield(__at(i))
      elsif __at(i).__asked == item
        return i
      end
      i -= 1
    end
    nil
  end

  def include?(item)
    i = 0
    while i < size
      return true if __at(i).__asked == item

      i += 1
    end
    false
  end
  alias member? include?

  def min
    return nil if __doubt(size == 0)

    best = __at(0)
    i = 1
    while i < size
      x = __at(i)
      if block_given?
        best = x if __order(yield(x, best), x, best).__asked < 0
      elsif best.__above?(x)
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
        best = x if __order(yield(x, best), x, best).__asked > 0
      elsif best.__below?(x)
        best = x
      end
      i += 1
    end
    best
  end

  # Of a literal: each next element is asked.
  def __min
    best = __at(0)
    i = 1
    while i < size
      x = __at(i)
      best = x if x.__below?(best)
      i += 1
    end
    best
  end

  def __max
    best = __at(0)
    i = 1
    while i < size
      x = __at(i)
      best = x if x.__above?(best)
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
  alias reduce inject

  def cycle(times = nil)
    if times.nil?
      while size > 0
        each { |x| yield(x) }
      end
    else
      n = 0
      last = __int(times)
      while n < last
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
  alias collect map

  def map!
    i = 0
    while i < size
      self[i] = yield(__at(i))
      i += 1
    end
    self
  end
  alias collect! map!

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
  alias filter select
  alias find_all select

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
    __build(size) { |i| __at(size - 1 - i) }
  end

  def rotate(by = 1)
    first = __int(by)
    __build(size) { |i| __at((i + first) % size) }
  end

  # A new array of `count` elements from `from` on; all of them are there.
  def __slice(from, count)
    __build(count) { |i| __at(from + i) }
  end

  def dup
    __slice(0, size)
  end

  def take(length)
    count = __int(length)
    raise ArgumentError, "attempt to take negative size" if count < 0
    __slice(0, count < size ? count : size)
  end

  def to_a
    self
  end

  def drop(length)
    count = __int(length)
    raise ArgumentError, "attempt to drop negative size" if count < 0
    count < size ? __slice(count, size - count) : __slice(0, 0)
  end

  def first(length)
    count = __int(length)
    raise ArgumentError, "negative array size" if count < 0
    __slice(0, count < size ? count : size)
  end

  def last(length)
    count = __int(length)
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
    select { |x| !other.__before?(x, other.size) }
  end
  alias difference -

  def *(other)
    __makes_strings if other.is_a?(String)
    __no_text(other)
    times = __int(other)
    raise ArgumentError, "negative argument" if times < 0
    __build(size * times) { |i| __at(i % size) }
  end

  def &(other)
    __needs_array(other) unless other.is_a?(Array)
    out = __buffer(size)
    n = 0
    i = 0
    while i < size
      x = __at(i)
      if other.__before?(x, other.size) && !out.__before?(x, n)
        out.__put(n, x)
        n += 1
      end
      i += 1
    end
    out.__take(n)
  end
  alias intersection &

  def intersect?(other)
    __needs_array(other) unless other.is_a?(Array)
    i = 0
    while i < size
      return true if other.__before?(__at(i), other.size)

      i += 1
    end
    false
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
  alias union |

  # Whether one of the first `count` elements is eql? to it.
  def __before?(item, count)
    i = 0
    while i < count
      return true if __at(i).__asked.eql?(item)

      i += 1
    end
    false
  end

  def uniq
    out = __buffer(size)
    n = 0
    if block_given?
      # of one element nothing is asked
      return dup if size <= 1

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

  def product(other)
    __needs_array(other) unless other.is_a?(Array)
    __build(size * other.size) { |i| [__at(i / other.size), other.__at(i % other.size)] }
  end

  def zip(second = (one = true), third = (two = true), fourth = (three = true))
    if block_given?
      each_index { |i| yield(one ? [__at(i)] : two ? [__at(i), second.__nth(i)] : three ? [__at(i), second.__nth(i), third.__nth(i)] : [__at(i), second.__nth(i), third.__nth(i), fourth.__nth(i)]) }
      nil
    elsif one
      __build(size) { |i| [__at(i)] }
    elsif two
      __build(size) { |i| [__at(i), second.__nth(i)] }
    elsif three
      __build(size) { |i| [__at(i), second.__nth(i), third.__nth(i)] }
    else
      __build(size) { |i| [__at(i), second.__nth(i), third.__nth(i), fourth.__nth(i)] }
    end
  end

  # What `zip` takes from its argument.
  def __nth(at)
    self[at]
  end

  def transpose
    return __slice(0, 0) if __doubt(size == 0)

    first = __at(0)
    each do |row|
      __needs_array(row) unless row.is_a?(Array)
      raise IndexError, "element size differs (#{row.size} should be #{first.size})" if row.size != first.size
    end
    __build(first.size) { |i| __build(size) { |j| __at(j).__at(i) } }
  end

  def each_slice(length)
    count = __int(length)
    raise ArgumentError, "invalid slice size" if count <= 0
    i = 0
    while i < size
      yield(__slice(i, i + count < size ? count : size - i))
      i += count
    end
    self
  end

  def each_cons(length)
    count = __int(length)
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

  def flatten(levels = -1)
    levels = __int(levels) unless levels.nil?
    return dup if __doubt(levels == 0)

    __flat { |x| __one_level(x) if levels != 1 }
  end

  # One level, which is all that most arrays have. The block is shown what is deeper.
  def __flat
    n = 0
    each { |x| n += x.is_a?(Array) ? x.size : 1 }
    out = __buffer(n)
    n = 0
    each do |x|
      if x.is_a?(Array)
        x.each do |y|
          yield(y)
          out.__put(n, y)
          n += 1
        end
      else
        __no_list(x)
        out.__put(n, x)
        n += 1
      end
    end
    out
  end

  def flat_map
    map { |x| yield(x) }.__flat {}
  end
  alias collect_concat flat_map

  def fill(item = (none = true), from = 0, count = nil)
    __fill_form unless from.is_a?(Integer) && (none || !block_given?)
    from += size if from < 0
    from = 0 if from < 0
    count = size - from if count.nil?
    i = from
    while i < from + count
      self[i] = block_given? ? yield(i) : item
      i += 1
    end
    self
  end

  def fetch(at, default = (none = true))
    i = __int(at)
    i += size if i < 0
    if i >= 0 && i < size
      __at(i)
    elsif block_given?
      yield(at)
    elsif none
      raise IndexError, "index #{at} outside of array bounds: #{-size}...#{size}"
    else
      default
    end
  end

  def dig(at, other = (one = true))
    value = self[__int(at)]
    one ? value : value.__dug(other)
  end

  def values_at(*places)
    places.map { |at| self[at] }
  end

  def bsearch_index
    (0...size).bsearch { |i| yield(__at(i)) }
  end

  def bsearch
    at = bsearch_index { |x| yield(x) }
    at.nil? ? nil : __at(at)
  end

  # In the order of their places, as the next two.
  def combination(length)
    count = __int(length)
    return self if count < 0 || count > size

    picks = __build(count) { |i| i }
    while true
      yield(__build(count) { |i| __at(picks.__at(i)) })
      i = count - 1
      i -= 1 while i >= 0 && picks.__at(i) == size - count + i
      return self if i < 0

      pick = picks.__at(i)
      while i < count
        pick += 1
        picks.__put(i, pick)
        i += 1
      end
    end
  end

  def permutation(length = size)
    count = __int(length)
    return self if count < 0 || count > size

    picks = __build(count) { |i| i }
    while true
      yield(__build(count) { |i| __at(picks.__at(i)) })
      i = count - 1
      pick = 0
      while i >= 0
        pick = picks.__at(i) + 1
        pick += 1 while picks.__before?(pick, i)
        break if pick < size

        i -= 1
      end
      return self if i < 0

      while i < count
        picks.__put(i, pick)
        i += 1
        pick = 0
        pick += 1 while picks.__before?(pick, i)
      end
    end
  end

  def sort!
    __become(block_given? ? sort { |a, b| yield(a, b) } : sort)
  end

  def sort_by!
    __become(sort_by { |x| yield(x) })
  end

  def reverse!
    __become(reverse)
  end

  def rotate!(by = 1)
    __become(rotate(by))
  end

  # Takes over the elements of an array of the same size.
  def __become(list)
    i = 0
    while i < size
      self[i] = list.__at(i)
      i += 1
    end
    self
  end

  # Stable, as Ruby's is where the C library sorts by merging.
  def sort
    if block_given?
      __merge_sort { |a, b| __order(yield(a, b), a, b).__asked > 0 }
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
    __by(map { |x| yield(x) })
  end

  # In the order of the keys, of which there is one for each element.
  def __by(keys)
    order = __build(size) { |i| i }
    order.__merge_sort { |a, b| keys.__at(a).__above?(keys.__at(b)) }.map { |i| __at(i) }
  end

  def slice(from, count = (one = true))
    if one
      if from.is_a?(Range)
        first = from.begin.nil? ? 0 : __int(from.begin)
        last = from.end.nil? ? size : __int(from.end)
        first += size if first < 0
        last += size if last < 0
        last -= 1 if from.exclude_end?
        return nil if __doubt(first < 0 || first > size)

        last = size - 1 if last >= size
        __slice(first, last < first ? 0 : last - first + 1)
      else
        self[from]
      end
    else
      first = __int(from)
      length = __int(count)
      first += size if first < 0
      return nil if __doubt(first < 0 || first > size || length < 0)

      __slice(first, first + length > size ? size - first : length)
    end
  end

  def __map_with_index(start = 0)
    __build(size) { |i| yield(__at(i), i + start) }
  end
  alias __collect_with_index __map_with_index

  def __each_with_index(start = 0)
    i = 0
    while i < size
      yield(__at(i), i + start)
      i += 1
    end
    self
  end

  def __splat
    __slice(0, size)
  end

  def __rest(from, back)
    count = size - from - back
    count > 0 ? __slice(from, count) : __slice(0, 0)
  end
end
