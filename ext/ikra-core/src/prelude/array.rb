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

  def min(count = (one = true))
    unless one || count.nil?
      return __extremes(count, 1) { |a, b| __order(yield(a, b), a, b) } if block_given?

      return __extremes(count, 1) { |a, b| a.__compared(b) }
    end
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

  def max(count = (one = true))
    unless one || count.nil?
      return __extremes(count, -1) { |a, b| __order(yield(a, b), a, b) } if block_given?

      return __extremes(count, -1) { |a, b| a.__compared(b) }
    end
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

  # Adds the elements to the key of the next pair.
  def __key_parts
    size = __key_list
    i = 0
    while i < size
      part = __at(i)
      if part.is_a?(::Array)
        part.__key_parts
      else
        __key_part(part)
      end
      i += 1
    end
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

  def min_by(count = (one = true))
    return __extremes_by(count, 1) { |x| yield(x) } unless one || count.nil?
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

  def max_by(count = (one = true))
    return __extremes_by(count, -1) { |x| yield(x) } unless one || count.nil?
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

  # So many of the least (`sign` 1) or the greatest (-1), by what the block says of two: Ruby's own choice among equals.
  def __extremes(count, sign)
    n = __extremes_count(count)
    return __slice(0, 0) if n == 0 || size == 0

    most = n * 4
    kept = __buffer(most < size ? most : size)
    limit = __at(0)
    length = 0
    full = false
    i = 0
    while i < size
      x = __at(i)
      i += 1
      next if full && sign * __sign(yield(x, limit)) >= 0

      kept.__put(length, x)
      length += 1
      next if length < most

      last = kept.__split_around(kept, length, n, sign) { |a, b| yield(a, b) }
      limit = kept.__at(last)
      length = n
      full = true
    end
    if length > n
      kept.__split_around(kept, length, n, sign) { |a, b| yield(a, b) }
      length = n
    end
    sorted = kept.__slice(0, length).__merge_sort { |a, b| yield(a, b) > 0 }
    sign < 0 ? sorted.reverse : sorted
  end

  # The same by the keys that the block gives.
  def __extremes_by(count, sign)
    n = __extremes_count(count)
    return __slice(0, 0) if n == 0 || size == 0

    most = n * 4
    list = __buffer(most < size ? most : size)
    keys = __buffer(most < size ? most : size)
    length = 0
    full = false
    limit = nil
    i = 0
    while i < size
      x = __at(i)
      key = yield(x)
      i += 1
      next if full && sign * key.__compared(limit) >= 0

      list.__put(length, x)
      keys.__put(length, key)
      length += 1
      next if length < most

      last = keys.__split_around(list, length, n, sign) { |a, b| a.__compared(b) }
      limit = keys.__at(last)
      length = n
      full = true
    end
    if length > n
      keys.__split_around(list, length, n, sign) { |a, b| a.__compared(b) }
      length = n
    end
    sorted = list.__slice(0, length).__by(keys)
    sign < 0 ? sorted.reverse : sorted
  end

  # Brings the least of `length` elements before the others, so that `n` are apart, as Ruby does. Another list follows.
  # The block compares. Gives the place of the last pivot.
  def __split_around(other, length, n, sign)
    left = 0
    right = length - 1
    while true
      __swap(other, left + (right - left) / 2, right)
      pivot = __at(right)
      pivots = 1
      store = left
      i = left
      while i <= right - pivots
        c = sign * __sign(yield(__at(i), pivot))
        if c == 0
          __swap(other, i, right - pivots)
          pivots += 1
          next
        end
        if c < 0
          __swap(other, i, store)
          store += 1
        end
        i += 1
      end
      j = store
      i = right
      while i > right - pivots && i > j
        __swap(other, j, i)
        j += 1
        i -= 1
      end
      return store if store <= n && n <= store + pivots

      if n < store
        right = store - 1
      else
        left = store + pivots
      end
    end
  end

  def __swap(other, i, j)
    x = __at(i)
    __put(i, __at(j))
    __put(j, x)
    return if __same?(other)

    y = other.__at(i)
    other.__put(i, other.__at(j))
    other.__put(j, y)
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
    n = 0
    last = times.nil? ? 0 : __int(times)
    while size > 0 && (times.nil? || n < last)
      i = 0
      while i < size
        yield(__at(i))
        i += 1
      end
      n += 1
    end
    nil
  end

  # `cycle.take(n)`
  def __cycle_take(length)
    count = __int(length)
    raise ArgumentError, "attempt to take negative size" if count < 0

    __build(size == 0 ? 0 : count) { |i| __at(i % size) }
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

  def clone(freeze: nil)
    __freeze_form unless freeze.nil? || freeze == true || freeze == false
    copy = __slice(0, size)
    copy.__freeze if freeze == true || (freeze.nil? && __frozen?)
    copy
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

  def difference(*others)
    others.each { |other| __needs_array(other) unless other.is_a?(Array) }
    select { |x| !others.any? { |other| other.__before?(x, other.size) } }
  end

  def join(separator = nil)
    by = separator.nil? ? "" : "".__text(separator)
    texts = map { |x| x.__joinable }
    return "".__coded(0, 3) if size == 0

    state = texts.__at(0).__state
    all = texts.__at(0).bytesize
    i = 1
    while i < size
      text = texts.__at(i)
      state = text.__appended(text.__appended(state, by.__state), text.__state)
      all += by.bytesize + text.bytesize
      i += 1
    end
    "".__disagree if state < 0
    made = __string(all)
    made.__fill(0, texts.__at(0))
    to = texts.__at(0).bytesize
    i = 1
    while i < size
      made.__fill(to, by)
      to += by.bytesize
      made.__fill(to, texts.__at(i))
      to += texts.__at(i).bytesize
      i += 1
    end
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  def *(other)
    return join(other) if other.is_a?(String)

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

  def intersection(*others)
    return dup if others.size == 0

    others.each { |other| __needs_array(other) unless other.is_a?(Array) }
    out = __buffer(size)
    n = 0
    each do |x|
      if others.all? { |other| other.__before?(x, other.size) } && !out.__before?(x, n)
        out.__put(n, x)
        n += 1
      end
    end
    out.__take(n)
  end

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

  def union(*others)
    others.each { |other| __needs_array(other) unless other.is_a?(Array) }
    count = size
    others.each { |other| count += other.size }
    out = __buffer(count)
    n = 0
    each do |x|
      unless out.__before?(x, n)
        out.__put(n, x)
        n += 1
      end
    end
    others.each do |other|
      other.each do |x|
        unless out.__before?(x, n)
          out.__put(n, x)
          n += 1
        end
      end
    end
    out.__take(n)
  end

  # Of an index of what is being compared: where two of these kinds belong in it. -1: they are being compared. The last
  # one that was added leaves first, so that no search ends too early.
  def __pair_place(trail, one, two, kinds)
    hash = ((((one & 0xffff_ffff) ^ (one >> 32)) * 31) + ((two & 0xffff_ffff) ^ (two >> 32))) * 31
    place = (hash ^ (hash >> 16)) & (__size - 1)
    while (at = __at(place)) > 0
      return -1 if trail.__at(at - 1) == one && trail.__at(at) == two && trail.__at(at + 1) == kinds

      place = (place + 1) & (__size - 1)
    end
    place
  end

  # Adds all that are being compared to an empty index.
  def __add_pairs(trail, depth)
    at = 0
    while at < depth
      __put(__pair_place(trail, trail.__at(at), trail.__at(at + 1), trail.__at(at + 2)), at + 1)
      at += 3
    end
    nil
  end

  # Whether one of the first `count` elements is eql? to it.
  def __before?(item, count)
    item.__keyed
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

  def product(other = (none = true), *more)
    __needs_array(other) unless none || other.is_a?(Array)
    more.each { |list| __needs_array(list) unless list.is_a?(Array) }
    count = none ? size : size * other.size
    more.each { |list| count *= list.size }
    if block_given?
      i = 0
      while i < count
        yield(none ? [__at(i)] : __pick(i, other, more))
        i += 1
      end
      return self
    end
    return __build(count) { |i| [__at(i)] } if none
    return __build(count) { |i| [__at(i / other.size), other.__at(i % other.size)] } if more.size == 0

    __build(count) { |i| __pick(i, other, more) }
  end

  # The elements of a product at one place.
  def __pick(at, other, more)
    out = __buffer(more.size + 2)
    j = more.size - 1
    while j >= 0
      list = more.__at(j)
      out.__put(j + 2, list.__at(at % list.size))
      at /= list.size
      j -= 1
    end
    out.__put(1, other.__at(at % other.size))
    out.__put(0, __at(at / other.size))
    out
  end

  def zip(second = (one = true), third = (two = true), fourth = (three = true), *more)
    if !one && !two && !three && more.size > 0
      if block_given?
        each_index { |i| yield(__row(i, second, third, fourth, more)) }
        return nil
      end
      return __build(size) { |i| __row(i, second, third, fourth, more) }
    end
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

  # What `zip` gives of five lists and more.
  def __row(at, second, third, fourth, more)
    out = __buffer(more.size + 4)
    out.__put(0, __at(at))
    out.__put(1, second.__nth(at))
    out.__put(2, third.__nth(at))
    out.__put(3, fourth.__nth(at))
    j = 0
    while j < more.size
      # of an empty list of further ones nothing is known
      list = more.__at(j)
      out.__put(j + 4, list.nil? ? nil : list.__nth(at))
      j += 1
    end
    out
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
    return [min, max] unless block_given?
    return [nil, nil] if __doubt(size == 0)

    # of each pair, the lesser one is compared with the least, and the greater one with the greatest
    least = __at(0)
    greatest = least
    i = 0
    while i < size
      low = __at(i)
      high = low
      if i + 1 < size
        high = __at(i + 1)
        order = __order(yield(low, high), low, high)
        if order.__asked > 0
          low = high
          high = __at(i)
        elsif !(order.__asked < 0)
          high = low
        end
      end
      if i == 0
        least = low
        greatest = high
      else
        least = low if __order(yield(low, least), low, least).__asked < 0
        greatest = high if __order(yield(high, greatest), high, greatest).__asked > 0
      end
      i += 2
    end
    [least, greatest]
  end

  def flatten(levels = -1)
    levels = __c_int(levels) unless levels.nil?
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
    raise ArgumentError, "wrong number of arguments (given 0, expected 1..3)" if none && !block_given?
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
      raise IndexError, "index #{__int(at)} outside of array bounds: #{-size}...#{size}"
    else
      default
    end
  end

  def dig(at, second = (one = true), third = (two = true), fourth = (three = true), fifth = (four = true))
    value = self[__int(at)]
    return value if one
    return value.__dug(second) if two
    return value.__dug(second, third) if three
    return value.__dug(second, third, fourth) if four

    value.__dug(second, third, fourth, fifth)
  end

  def assoc(key)
    each { |x| return x if x.is_a?(Array) && x.size > 0 && x.__at(0).__asked == key }
    nil
  end

  def rassoc(value)
    each { |x| return x if x.is_a?(Array) && x.size > 1 && x.__at(1).__asked == value }
    nil
  end

  def deconstruct
    self
  end

  def to_ary
    self
  end

  # Pieces that end where the block says so of neighbours.
  def __list_slice_when
    return __build(0) { |i| __slice(i, i) } if __doubt(size == 0)

    out = __buffer(size)
    n = 0
    from = 0
    i = 1
    while i < size
      if yield(__at(i - 1), __at(i))
        out.__put(n, __slice(from, i - from))
        n += 1
        from = i
      end
      i += 1
    end
    out.__put(n, __slice(from, size - from))
    out.__take(n + 1)
  end

  def shuffle
    __slice(0, size).__shuffled(size)
  end

  def shuffle!
    __become(shuffle)
  end

  def sample(count = (one = true))
    if one
      return nil if __doubt(size == 0)

      return __at(__draw(size))
    end
    n = __int(count)
    raise ArgumentError, "negative sample number" if n < 0

    n = size if n > size
    __slice(0, size).__shuffled(n).__slice(0, n)
  end

  # Draws the first `n` elements, each among those that are left.
  def __shuffled(n)
    i = 0
    while i < n
      j = i + __draw(size - i)
      x = __at(i)
      __put(i, __at(j))
      __put(j, x)
      i += 1
    end
    self
  end

  def values_at(*places)
    places.map do |at|
      return __values_in(places) if at.is_a?(Range)

      self[at]
    end
  end

  # The same where some of the places are Ranges, which go on behind the end with nil.
  def __values_in(places)
    count = 0
    places.each do |at|
      if at.is_a?(Range)
        count += __range_length(at, __range_start(at))
      else
        # raises in the order of the places
        __int(at)
        count += 1
      end
    end
    out = __buffer(count)
    n = 0
    places.each do |at|
      if at.is_a?(Range)
        from = __range_start(at)
        last = n + __range_length(at, from)
        while n < last
          out.__put(n, self[from])
          from += 1
          n += 1
        end
      else
        out.__put(n, self[at])
        n += 1
      end
    end
    out
  end

  # Where the part begins that a Range means, which may be behind the end.
  def __range_start(range)
    from = range.begin.nil? ? 0 : __int(range.begin)
    start = from < 0 ? from + size : from
    if start < 0
      raise RangeError, "#{range.begin}...#{range.end} out of range" if range.exclude_end?
      raise RangeError, "#{range.begin}..#{range.end} out of range"
    end
    start
  end

  def __range_length(range, start)
    if range.end.nil?
      last = size
    else
      last = __int(range.end)
      last += size if last < 0
      last += 1 unless range.exclude_end?
    end
    last > start ? last - start : 0
  end

  # `self[range] = value` and `self[from, count] = value`, in place: the part keeps its length.
  def __set_part(from, count, value = (of_range = true))
    list = of_range ? __as_part(count) : __as_part(value)
    start = of_range ? __range_start(from) : __part_start(from, count)
    length = __part_length(start, of_range ? __range_length(from, start) : __int(count))
    __resized if length != list.size || start > size

    # a frozen array raises
    self[0] = __at(0) if length == 0 && size > 0
    __copy_part(start, list)
    of_range ? count : value
  end

  # The array after that, which may be longer or shorter: `self` where it is not.
  def __with_part(from, count, value = (of_range = true))
    list = of_range ? __as_part(count) : __as_part(value)
    start = of_range ? __range_start(from) : __part_start(from, count)
    length = __part_length(start, of_range ? __range_length(from, start) : __int(count))
    if length == list.size && start <= size
      __copy_part(start, list)
      return self
    end
    ahead = start < size ? start : size
    rest = size - ahead - length
    out = __buffer(start + list.size + rest)
    i = 0
    while i < ahead
      out.__put(i, __at(i))
      i += 1
    end
    if __doubt(start > size)
      while i < start
        out.__put(i, nil)
        i += 1
      end
    end
    i = 0
    while i < list.size
      out.__put(start + i, list.__at(i))
      i += 1
    end
    i = 0
    while i < rest
      out.__put(start + list.size + i, __at(ahead + length + i))
      i += 1
    end
    out
  end

  # What is assigned to a part, as a list that this array does not change.
  def __as_part(value)
    if value.is_a?(Array)
      __same?(value) ? value.__slice(0, value.size) : value
    else
      __no_list(value)
      [value]
    end
  end

  def __part_start(from, count)
    start = __int(from)
    length = __int(count)
    raise IndexError, "negative length (#{length})" if length < 0

    least = -size
    raise IndexError, "index #{start} too small for array; minimum: #{least}" if start < least

    start < 0 ? start + size : start
  end

  # How many of the elements that are there a part has.
  def __part_length(start, length)
    return 0 if start >= size

    length > size - start ? size - start : length
  end

  def __copy_part(start, list)
    i = 0
    while i < list.size
      self[start + i] = list.__at(i)
      i += 1
    end
  end

  def bsearch_index
    low = 0
    high = size
    found = false
    while low < high
      middle = low + (high - low) / 2
      side = __side(yield(__at(middle)))
      return middle if side == 0

      found = true if side == -2
      if side < 0
        high = middle
      else
        low = middle + 1
      end
    end
    return nil if __doubt(!found)

    low
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

  def permutation(number = nil)
    count = number.nil? ? size : __int(number)
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

  def repeated_combination(number)
    count = __int(number)
    return self if count < 0 || size == 0 && count > 0

    picks = __build(count) { |i| 0 }
    while true
      yield(__build(count) { |i| __at(picks.__at(i)) })
      i = count - 1
      i -= 1 while i >= 0 && picks.__at(i) == size - 1
      return self if i < 0

      pick = picks.__at(i) + 1
      while i < count
        picks.__put(i, pick)
        i += 1
      end
    end
  end

  def repeated_permutation(number)
    count = __int(number)
    return self if count < 0 || size == 0 && count > 0

    picks = __build(count) { |i| 0 }
    while true
      yield(__build(count) { |i| __at(picks.__at(i)) })
      i = count - 1
      i -= 1 while i >= 0 && picks.__at(i) == size - 1
      return self if i < 0

      picks.__put(i, picks.__at(i) + 1)
      i += 1
      while i < count
        picks.__put(i, 0)
        i += 1
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

  alias __own_count count
  alias __own_filter_map filter_map

  # `zip(second).map { |x, y| … }`: no list of pairs where the block cannot change what would be in it.
  def __zipped_map(second)
    return zip(second).map { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    map { |x| yield(x, second.__nth(i += 1)) }
  end
  alias __zipped_collect __zipped_map

  def __zipped_sum(second, start = 0)
    return zip(second).sum(start) { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    sum(start) { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_count(second)
    return zip(second).count { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    count { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_all?(second)
    return zip(second).all? { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    all? { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_any?(second)
    return zip(second).any? { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    any? { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_none?(second)
    return zip(second).none? { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    none? { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_one?(second)
    return zip(second).one? { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    one? { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_filter_map(second)
    return zip(second).filter_map { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    filter_map { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_flat_map(second)
    return zip(second).flat_map { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    flat_map { |x| yield(x, second.__nth(i += 1)) }
  end

  def __zipped_find_index(second)
    return zip(second).find_index { |pair| yield(pair) } unless __unwritten? && second.__unwritten?

    i = -1
    find_index { |x| yield(x, second.__nth(i += 1)) }
  end

  # `each_with_index.min_by { |x, i| … }`: no list, and no pairs but the result.
  def __each_with_index_min_by
    return nil if __doubt(size == 0)

    best = __at(0)
    least = yield(best, 0)
    at = 0
    i = 1
    while i < size
      x = __at(i)
      v = yield(x, i)
      if v.__below?(least)
        best = x
        least = v
        at = i
      end
      i += 1
    end
    [best, at]
  end

  def __each_with_index_max_by
    return nil if __doubt(size == 0)

    best = __at(0)
    most = yield(best, 0)
    at = 0
    i = 1
    while i < size
      x = __at(i)
      v = yield(x, i)
      if v.__above?(most)
        best = x
        most = v
        at = i
      end
      i += 1
    end
    [best, at]
  end

  def __splat
    __slice(0, size)
  end

  def __rest(from, back)
    count = size - from - back
    count > 0 ? __slice(from, count) : __slice(0, 0)
  end
end
