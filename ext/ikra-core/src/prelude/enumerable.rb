# frozen_string_literal: true

# Enumerable, over `each` alone.
module Enumerable
  def all?(pattern = (none = true))
    if none
      if block_given?
        each { |x| return false unless yield(x) }
      else
        each { |x| return false unless x }
      end
    else
      each { |x| return false unless pattern.__asked === x }
    end
    true
  end

  def any?(pattern = (none = true))
    if none
      if block_given?
        each { |x| return true if yield(x) }
      else
        each { |x| return true if x }
      end
    else
      each { |x| return true if pattern.__asked === x }
    end
    false
  end

  def none?(pattern = (none = true))
    if none
      if block_given?
        each { |x| return false if yield(x) }
      else
        each { |x| return false if x }
      end
    else
      each { |x| return false if pattern.__asked === x }
    end
    true
  end

  def one?(pattern = (none = true))
    n = 0
    each do |x|
      hit = if none
        block_given? ? yield(x) : x
      else
        pattern.__asked === x
      end
      n += 1 if hit
      return false if n > 1
    end
    n == 1
  end

  def count(item = (all = true))
    n = 0
    each do |x|
      hit = all ? !block_given? || yield(x) : x.__asked == item
      n += 1 if hit
    end
    n
  end

  def find(otherwise = nil)
    each { |x| return x if yield(x) }
    otherwise.nil? ? nil : otherwise.call
  end
  alias detect find

  def find_index(item = (none = true))
    __block_form if none && !block_given?
    i = 0
    each do |x|
      if none
        return i if yield(x)
      elsif x.__asked == item
        return i
      end
      i += 1
    end
    nil
  end

  def include?(item)
    each { |x| return true if x.__asked == item }
    false
  end
  alias member? include?

  def inject(start = (none = true))
    unless none
      memo = start
      each { |x| memo = yield(memo, x) }
      return memo
    end

    first = true
    memo = nil
    each do |x|
      if first
        memo = x
        first = false
      else
        memo = yield(memo, x)
      end
    end
    memo
  end
  alias reduce inject

  # Ruby's own: exact over Integers and Rationals, compensated (Kahan-Babuska) from the first Float on.
  def sum(start = 0)
    # Ruby adds up what it takes for a Range of Integers by a formula
    __no_range unless block_given?
    sum = start
    float = start.is_a?(Float)
    f = float ? start.to_f : 0.0
    c = 0.0
    # an Array adds up the Integers before its first Float by themselves, also where the start is a Float
    ahead = float && is_a?(Array)
    whole = 0
    other = false
    each do |e|
      x = block_given? ? yield(e) : e
      if other
        sum = sum.__asked + x
      elsif x.is_a?(Float) && (sum.is_a?(Integer) || sum.is_a?(Float) || sum.is_a?(Rational))
        f = sum.to_f unless float
        f += whole if ahead && whole != 0
        ahead = false
        float = true
        unless f.nan?
          if x.nan?
            f = x
          elsif x.infinite?
            f = f.infinite? && (x < 0.0) != (f < 0.0) ? 0.0 / 0.0 : x
          elsif !f.infinite?
            t = f + x
            if f.abs >= x.abs
              c += ((f - t) + x)
            else
              c += ((x - t) + f)
            end
            f = t
          end
        end
      elsif (x.is_a?(Integer) || x.is_a?(Rational)) && (sum.is_a?(Integer) || sum.is_a?(Float) || sum.is_a?(Rational))
        # Arrays add Rationals to a Float before, others to a Float after
        __sum_form if x.is_a?(Rational) && start.is_a?(Float)
        if ahead
          whole += x
        elsif float
          y = x.to_f
          unless f.nan? || f.infinite?
            t = f + y
            if f.abs >= y.abs
              c += ((f - t) + y)
            else
              c += ((y - t) + f)
            end
            f = t
          end
        else
          sum += x
        end
      else
        # an Array adds up such elements before the start, and makes a Float of the start where one is a Float
        unless start.is_a?(Integer) || start.is_a?(Float) || start.is_a?(Rational) || start.is_a?(Complex)
          __sum_of_object if is_a?(Array) && (x.is_a?(Integer) || x.is_a?(Rational) || x.is_a?(Float))
        end
        __sum_of_object if is_a?(Array) && start.is_a?(Complex) && x.is_a?(Float)
        f += whole if ahead && whole != 0
        ahead = false
        sum = f + c if float
        float = false
        other = true
        sum = sum.__asked + x
      end
    end
    return sum if __doubt(!float)

    f += whole if ahead && whole != 0
    f + c
  end
  alias __sum sum

  # The elements from which `min(count)` and similar methods choose. Ruby checks the count before it calls `each`.
  def __sought(count)
    out = []
    each { |x| out << x } if __extremes_count(count) > 0
    out
  end

  def min(count = (one = true))
    unless one || count.nil?
      return __sought(count).min(count) { |a, b| yield(a, b) } if block_given?

      return __sought(count).min(count)
    end
    best = nil
    none = true
    each do |x|
      if none
        best = x
        none = false
      elsif block_given?
        best = x if __order(yield(x, best), x, best).__asked < 0
      elsif x.__below?(best)
        best = x
      end
    end
    best
  end

  def max(count = (one = true))
    unless one || count.nil?
      return __sought(count).max(count) { |a, b| yield(a, b) } if block_given?

      return __sought(count).max(count)
    end
    best = nil
    none = true
    each do |x|
      if none
        best = x
        none = false
      elsif block_given?
        best = x if __order(yield(x, best), x, best).__asked > 0
      elsif x.__above?(best)
        best = x
      end
    end
    best
  end

  def min_by(count = (one = true))
    return __sought(count).min_by(count) { |x| yield(x) } unless one || count.nil?

    best = nil
    least = nil
    none = true
    each do |x|
      v = yield(x)
      if none || v.__below?(least)
        best = x
        least = v
        none = false
      end
    end
    best
  end

  def max_by(count = (one = true))
    return __sought(count).max_by(count) { |x| yield(x) } unless one || count.nil?

    best = nil
    greatest = nil
    none = true
    each do |x|
      v = yield(x)
      if none || v.__above?(greatest)
        best = x
        greatest = v
        none = false
      end
    end
    best
  end

  def each_with_index
    i = 0
    each do |x|
      yield(x, i)
      i += 1
    end
    self
  end

  def each_with_object(memo)
    each { |x| yield(x, memo) }
    memo
  end

  # `each_with_object([]) { … }`, where the array is a variable around the block.
  def __list_each_with_object
    each { |x| yield(x) }
  end

  def each_entry
    each { |x| yield(x) }
    self
  end

  def map
    out = []
    each { |x| out << yield(x) }
    out
  end
  alias collect map

  def to_a
    out = []
    each { |x| out << x }
    out
  end
  alias entries to_a

  def take_while
    out = []
    each do |x|
      return out unless yield(x)

      out << x
    end
    out
  end

  def sort
    if block_given?
      to_a.sort { |a, b| yield(a, b) }
    else
      to_a.sort
    end
  end

  def minmax
    return __minmax { |a, b| __order(yield(a, b), a, b) } if block_given?

    __minmax { |a, b| a.__compared(b) }
  end

  # Of each pair, the lesser one is compared with the least, and the greater one with the greatest.
  def __minmax
    least = nil
    greatest = nil
    none = true
    half = false
    last = nil
    each do |x|
      if half
        half = false
        order = yield(last, x)
        low = order > 0 ? x : last
        high = order < 0 ? x : last
        if none
          least = low
          greatest = high
          none = false
        else
          least = low if yield(low, least) < 0
          greatest = high if yield(high, greatest) > 0
        end
      else
        half = true
        last = x
      end
    end
    if half
      least = last if none || yield(last, least) < 0
      greatest = last if none || yield(last, greatest) > 0
    end
    [least, greatest]
  end

  def minmax_by
    min = nil
    max = nil
    least = nil
    greatest = nil
    none = true
    half = false
    last = nil
    key = nil
    each do |x|
      v = yield(x)
      if half
        half = false
        order = key.__compared(v)
        low = order > 0 ? v : key
        high = order < 0 ? v : key
        if none || low.__below?(least)
          min = order > 0 ? x : last
          least = low
        end
        if none || high.__above?(greatest)
          max = order < 0 ? x : last
          greatest = high
        end
        none = false
      else
        half = true
        last = x
        key = v
      end
    end
    if half
      min = last if none || key.__below?(least)
      max = last if none || key.__above?(greatest)
    end
    [min, max]
  end

  def select
    out = []
    each { |x| out << x if yield(x) }
    out
  end
  alias filter select
  alias find_all select

  def reject
    out = []
    each { |x| out << x unless yield(x) }
    out
  end

  def filter_map
    out = []
    each do |x|
      y = yield(x)
      out << y if y
    end
    out
  end

  def compact
    out = []
    each { |x| out << x unless x.nil? }
    out
  end

  def partition
    yes = []
    no = []
    each do |x|
      if yield(x)
        yes << x
      else
        no << x
      end
    end
    [yes, no]
  end

  def flat_map
    out = []
    each do |x|
      y = yield(x)
      if y.is_a?(Array)
        y.each { |z| out << z }
      else
        __no_list(y)
        out << y
      end
    end
    out
  end
  alias collect_concat flat_map

  def drop_while
    out = []
    dropping = true
    each do |x|
      dropping = false if dropping && !yield(x)
      out << x unless dropping
    end
    out
  end

  def uniq
    out = []
    if block_given?
      keys = []
      each do |x|
        key = yield(x)
        unless keys.__before?(key, keys.size)
          keys << key
          out << x
        end
      end
    else
      each { |x| out << x unless out.__before?(x, out.size) }
    end
    out
  end

  def sort_by
    list = []
    keys = []
    each do |x|
      list << x
      keys << yield(x)
    end
    list.__by(keys)
  end

  def first(count = (one = true))
    if one
      each { |x| return x }
      nil
    else
      take(count)
    end
  end

  def take(length)
    count = __int(length)
    raise ArgumentError, "attempt to take negative size" if count < 0

    out = []
    return out if count == 0

    each do |x|
      out << x
      return out if out.size == count
    end
    out
  end

  def drop(length)
    count = __int(length)
    raise ArgumentError, "attempt to drop negative size" if count < 0

    out = []
    n = 0
    each do |x|
      out << x if n >= count
      n += 1
    end
    out
  end

  # Ruby asks an object for its size, and makes no slices that are longer.
  def __limit
    return nil if is_a?(Array) || is_a?(Range) || is_a?(Hash)
    return nil unless self.__asked.respond_to?(:size, true)

    limit = self.__asked.size
    limit.is_a?(Integer) && limit >= 0 ? limit : nil
  end

  def each_slice(length)
    count = __int(length)
    raise ArgumentError, "invalid slice size" if count <= 0

    limit = __limit
    count = limit if !limit.nil? && limit < count
    slice = []
    each do |x|
      slice << x
      if slice.size == count
        yield(slice)
        slice = []
      end
    end
    yield(slice) if slice.size > 0
    self
  end

  def each_cons(length)
    count = __int(length)
    raise ArgumentError, "invalid size" if count <= 0

    __cons_form if is_a?(Range) && self.begin.is_a?(Float)
    limit = __limit
    return self if !limit.nil? && limit < count

    list = []
    each do |x|
      list << x
      if list.size == count
        yield(list.dup)
        list.shift
      end
    end
    self
  end

  def zip(second = (one = true), third = (two = true), *more)
    # Ruby looks at the arguments before it asks for elements
    second.__nth(0) unless one
    third.__nth(0) unless two
    more.each { |list| list.__nth(0) unless list.nil? }
    i = -1
    if !one && !two && more.size > 0
      if block_given?
        each { |x| yield(__row(x, i += 1, second, third, more)) }
        return nil
      end
      return map { |x| __row(x, i += 1, second, third, more) }
    end
    if block_given?
      if one
        # as Ruby does it: the element itself, and no list of it alone
        each { |x| yield(x) }
      elsif two
        each { |x| yield([x, second.__nth(i += 1)]) }
      else
        each { |x| yield([x, second.__nth(i += 1), third.__nth(i)]) }
      end
      nil
    elsif one
      map { |x| [x] }
    elsif two
      map { |x| [x, second.__nth(i += 1)] }
    else
      map { |x| [x, second.__nth(i += 1), third.__nth(i)] }
    end
  end

  # What `zip` gives of four lists and more.
  def __row(first, at, second, third, more)
    out = __buffer(more.size + 3)
    out.__put(0, first)
    out.__put(1, second.__nth(at))
    out.__put(2, third.__nth(at))
    j = 0
    while j < more.size
      # of an empty list of further ones nothing is known
      list = more.__at(j)
      out.__put(j + 3, list.nil? ? nil : list.__nth(at))
      j += 1
    end
    out
  end

  # A Hash gives an Array here, and so `find_all` it is.
  def grep(pattern)
    if block_given?
      out = []
      each { |x| out << yield(x) if pattern.__asked === x }
      out
    else
      find_all { |x| pattern.__asked === x }
    end
  end

  def grep_v(pattern)
    if block_given?
      out = []
      each { |x| out << yield(x) unless pattern.__asked === x }
      out
    else
      find_all { |x| !(pattern.__asked === x) }
    end
  end

  # Pieces that end where the block says so of neighbours. These and the next are lists here, and Enumerators in Ruby;
  # the parser sees to that.
  def __list_slice_when
    out = []
    piece = []
    first = true
    last = nil
    each do |x|
      if first
        first = false
      elsif yield(last, x)
        out << piece.dup
        piece = []
      end
      piece << x
      last = x
    end
    out << piece.dup unless first
    out
  end

  def __list_chunk
    out = []
    piece = []
    open = false
    last = nil
    each do |x|
      key = yield(x)
      __separator if key.is_a?(Symbol)
      if key.nil?
        out << [last, piece.dup] if open
        open = false
      elsif open && last.__asked == key
        piece << x
      else
        out << [last, piece.dup] if open
        piece = []
        piece << x
        last = key
        open = true
      end
    end
    out << [last, piece.dup] if open
    out
  end

  def __list_chunk_while
    __list_slice_when { |a, b| !yield(a, b) }
  end

  def __list_slice_before(pattern = (none = true))
    raise ArgumentError, "wrong number of arguments (given 1, expected 0)" if !none && block_given?

    out = []
    piece = []
    first = true
    each do |x|
      cut = none ? yield(x) : pattern.__asked === x
      if !first && cut
        out << piece.dup
        piece = []
      end
      first = false
      piece << x
    end
    out << piece.dup unless first
    out
  end

  def __list_slice_after(pattern = (none = true))
    raise ArgumentError, "both pattern and block are given" if !none && block_given?

    out = []
    piece = []
    open = false
    each do |x|
      piece << x
      open = true
      if none ? yield(x) : pattern.__asked === x
        out << piece.dup
        piece = []
        open = false
      end
    end
    out << piece.dup if open
    out
  end

  # `chunk_while { … }.each { … }`
  def __each_piece
    each { |x| yield(x) }
    nil
  end

  # What comes first time around is kept for the next.
  def cycle(times = nil)
    return nil if !times.nil? && __int(times) <= 0

    list = []
    each do |x|
      list << x
      yield(x)
    end
    if times.nil?
      list.cycle { |x| yield(x) }
    else
      list.cycle(times - 1) { |x| yield(x) }
    end
    nil
  end

  # `cycle.take(n)`
  def __cycle_take(length)
    count = __int(length)
    raise ArgumentError, "attempt to take negative size" if count < 0

    out = []
    return out if count == 0

    list = []
    each do |x|
      list << x
      out << x
      return out if out.size == count
    end
    while list.size > 0
      list.each do |x|
        out << x
        return out if out.size == count
      end
    end
    out
  end

  def __cycle_first(length = (one = true))
    one ? first : __cycle_take(length)
  end

  # `cycle(n).to_a`
  def __list_cycle(times)
    out = []
    cycle(times) { |x| out << x }
    out
  end

  def reverse_each
    to_a.reverse_each { |x| yield(x) }
    self
  end

  def __map_with_index(start = 0)
    i = start - 1
    map { |x| yield(x, i += 1) }
  end
  alias __collect_with_index __map_with_index

  def __each_with_index(start = 0)
    i = start - 1
    each { |x| yield(x, i += 1) }
  end

  def __reverse_each_with_index(start = 0)
    i = start - 1
    reverse_each { |x| yield(x, i += 1) }
  end

  def __select_with_index(start = 0)
    i = start - 1
    select { |x| yield(x, i += 1) }
  end
  alias __filter_with_index __select_with_index

  def __reject_with_index(start = 0)
    i = start - 1
    reject { |x| yield(x, i += 1) }
  end

  def __filter_map_with_index(start = 0)
    i = start - 1
    filter_map { |x| yield(x, i += 1) }
  end

  def __flat_map_with_index(start = 0)
    i = start - 1
    flat_map { |x| yield(x, i += 1) }
  end

  # Those of an Enumerator, whatever the class has under these names.
  alias __own_all? all?
  alias __own_any? any?
  alias __own_count count
  alias __own_filter_map filter_map
  alias __own_find_index find_index
  alias __own_none? none?
  alias __own_one? one?
  alias __own_sum sum

  # `each_with_index.min_by { |x, i| … }` and the like.
  def __each_with_index_min_by
    best = nil
    least = nil
    at = -1
    i = -1
    each do |x|
      i += 1
      v = yield(x, i)
      if at < 0 || v.__below?(least)
        best = x
        least = v
        at = i
      end
    end
    at < 0 ? nil : [best, at]
  end

  def __each_with_index_max_by
    best = nil
    most = nil
    at = -1
    i = -1
    each do |x|
      i += 1
      v = yield(x, i)
      if at < 0 || v.__above?(most)
        best = x
        most = v
        at = i
      end
    end
    at < 0 ? nil : [best, at]
  end

  def __each_with_index_find
    i = -1
    each { |x| return [x, i] if yield(x, i += 1) }
    nil
  end
  alias __each_with_index_detect __each_with_index_find

  def __each_with_index_all?
    i = -1
    __own_all? { |x| yield(x, i += 1) }
  end

  def __each_with_index_any?
    i = -1
    __own_any? { |x| yield(x, i += 1) }
  end

  def __each_with_index_count
    i = -1
    __own_count { |x| yield(x, i += 1) }
  end

  def __each_with_index_filter_map
    i = -1
    __own_filter_map { |x| yield(x, i += 1) }
  end

  def __each_with_index_find_index
    i = -1
    __own_find_index { |x| yield(x, i += 1) }
  end

  def __each_with_index_none?
    i = -1
    __own_none? { |x| yield(x, i += 1) }
  end

  def __each_with_index_one?
    i = -1
    __own_one? { |x| yield(x, i += 1) }
  end

  def __each_with_index_sum
    i = -1
    __own_sum { |x| yield(x, i += 1) }
  end

  def __zipped_map(second)
    zip(second).map { |pair| yield(pair) }
  end
  alias __zipped_collect __zipped_map

  def __zipped_sum(second, start = 0)
    zip(second).sum(start) { |pair| yield(pair) }
  end

  def __zipped_count(second)
    zip(second).count { |pair| yield(pair) }
  end

  def __zipped_all?(second)
    zip(second).all? { |pair| yield(pair) }
  end

  def __zipped_any?(second)
    zip(second).any? { |pair| yield(pair) }
  end

  def __zipped_none?(second)
    zip(second).none? { |pair| yield(pair) }
  end

  def __zipped_one?(second)
    zip(second).one? { |pair| yield(pair) }
  end

  def __zipped_filter_map(second)
    zip(second).filter_map { |pair| yield(pair) }
  end

  def __zipped_flat_map(second)
    zip(second).flat_map { |pair| yield(pair) }
  end

  def __zipped_find_index(second)
    zip(second).find_index { |pair| yield(pair) }
  end

  # The keys are the very elements.
  def tally
    counts = {}
    each { |x| counts.__count(x) { x } }
    counts
  end

  # Each element gets the number of its group, so that each group is made with its length.
  def group_by
    lengths = {}
    list = []
    numbers = []
    each do |x|
      key = yield(x)
      list << x
      numbers << lengths.__count(key) { key.__as_key }
    end
    groups = {}
    lengths.each { |key, length| groups.__add(key, __buffer(__int(length))) }
    lengths.each_key { |key| lengths[key] = 0 }
    i = 0
    while i < list.size
      n = __int(numbers.__at(i))
      at = lengths.__values.__at(n)
      groups.__values.__at(n).__put(at, list.__at(i))
      lengths.__values.__put(n, at + 1)
      i += 1
    end
    groups
  end

  def to_h
    out = {}
    each do |x|
      out.__add_pair(block_given? ? yield(x) : x)
    end
    out
  end
end
