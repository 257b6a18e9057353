# frozen_string_literal: true

# Range's own forms of what Enumerable has; what begins with __ and is no list is of Ranges that are objects, whose ends may be
# any numbers, or nil.
class Range
  def __covers(value)
    return false unless value.is_a?(Numeric)

    from = __begin
    to = __end
    return false unless from.nil? || from <= value
    return true if to.nil?

    __exclude_end ? value < to : value <= to
  end

  def __first(count = (alone = true))
    return __begin if alone

    from = __begin
    (0...count).map { |i| from + i }
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

  def __eql_range(other)
    return false unless other.is_a?(Range)

    exclude_end? == other.exclude_end? && self.begin.eql?(other.begin) && self.end.eql?(other.end)
  end

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

  def map
    out = __buffer(size)
    from = first
    i = 0
    while i < size
      out.__put(i, yield(from + i))
      i += 1
    end
    out
  end

  def collect
    map { |x| yield(x) }
  end

  def to_a
    map { |x| x }
  end

  def entries
    map { |x| x }
  end

  def select
    to_a.select { |x| yield(x) }
  end

  def filter
    to_a.filter { |x| yield(x) }
  end

  def find_all
    to_a.find_all { |x| yield(x) }
  end

  def reject
    to_a.reject { |x| yield(x) }
  end

  def filter_map
    to_a.filter_map { |x| yield(x) }
  end

  def partition
    to_a.partition { |x| yield(x) }
  end

  def flat_map
    to_a.flat_map { |x| yield(x) }
  end

  def take_while
    to_a.take_while { |x| yield(x) }
  end

  def drop_while
    to_a.drop_while { |x| yield(x) }
  end

  def sort_by
    to_a.sort_by { |x| yield(x) }
  end

  def uniq
    to_a.uniq { |x| yield(x) }
  end

  def take(count)
    to_a.take(count)
  end

  def drop(count)
    to_a.drop(count)
  end

  def each_slice(count)
    to_a.each_slice(count) { |x| yield(x) }
    self
  end

  def each_cons(count)
    to_a.each_cons(count) { |x| yield(x) }
    self
  end

  def zip(other)
    to_a.zip(other)
  end

  def __map_with_index(start = 0)
    to_a.__map_with_index(start) { |x, i| yield(x, i) }
  end

  def __collect_with_index(start = 0)
    to_a.__collect_with_index(start) { |x, i| yield(x, i) }
  end

  def __each_with_index(start = 0)
    to_a.__each_with_index(start) { |x, i| yield(x, i) }
  end

  def __select_with_index(start = 0)
    to_a.__select_with_index(start) { |x, i| yield(x, i) }
  end

  def __filter_with_index(start = 0)
    to_a.__filter_with_index(start) { |x, i| yield(x, i) }
  end

  def __reject_with_index(start = 0)
    to_a.__reject_with_index(start) { |x, i| yield(x, i) }
  end

  def __filter_map_with_index(start = 0)
    to_a.__filter_map_with_index(start) { |x, i| yield(x, i) }
  end

  def __flat_map_with_index(start = 0)
    to_a.__flat_map_with_index(start) { |x, i| yield(x, i) }
  end

  def __list_each
    to_a
  end

  def __list_reverse_each
    to_a.reverse
  end

  def __list_each_with_index
    to_a.__list_each_with_index
  end

  def __list_each_slice(count)
    to_a.__list_each_slice(count)
  end

  def __list_each_cons(count)
    to_a.__list_each_cons(count)
  end

  def __list_step(by)
    raise ArgumentError, "step can't be 0" if by == 0
    raise ArgumentError, "step can't be negative" if by < 0

    (0...((size + by - 1) / by)).map { |i| first + (i * by) }
  end

  def __splat
    to_a
  end
end
