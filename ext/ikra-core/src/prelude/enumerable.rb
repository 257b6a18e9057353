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
      each { |x| return false unless pattern === x }
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
      each { |x| return true if pattern === x }
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
      each { |x| return false if pattern === x }
    end
    true
  end

  def one?(pattern = (none = true))
    n = 0
    each do |x|
      hit = if none
        block_given? ? yield(x) : x
      else
        pattern === x
      end
      n += 1 if hit
      return false if n > 1
    end
    n == 1
  end

  def count(item = (all = true))
    n = 0
    each do |x|
      if block_given?
        n += 1 if yield(x)
      elsif all
        n += 1
      elsif x == item
        n += 1
      end
    end
    n
  end

  def find
    each { |x| return x if yield(x) }
    nil
  end

  def detect
    each { |x| return x if yield(x) }
    nil
  end

  def find_index(item = (none = true))
    i = 0
    each do |x|
      if none
        return i if yield(x)
      elsif x == item
        return i
      end
      i += 1
    end
    nil
  end

  def include?(item)
    each { |x| return true if x == item }
    false
  end

  def member?(item)
    each { |x| return true if x == item }
    false
  end

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

  def reduce(start = (none = true))
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

  # Ruby's own: exact over Integers, compensated (Kahan-Babuska) from the first Float on.
  def sum(start = 0)
    sum = start
    float = start.is_a?(Float)
    f = float ? start.to_f : 0.0
    c = 0.0
    other = false
    each do |e|
      x = block_given? ? yield(e) : e
      if other
        sum += x
      elsif x.is_a?(Float) && (sum.is_a?(Integer) || sum.is_a?(Float))
        f = sum.to_f unless float
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
      elsif x.is_a?(Integer) && (sum.is_a?(Integer) || sum.is_a?(Float))
        if float
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
        sum = f + c if float
        float = false
        other = true
        sum += x
      end
    end
    return sum if __doubt(!float)

    f + c
  end

  def min
    best = nil
    none = true
    each do |x|
      if none
        best = x
        none = false
      elsif block_given?
        best = x if __order(yield(x, best), x, best) < 0
      elsif x.__below?(best)
        best = x
      end
    end
    best
  end

  def max
    best = nil
    none = true
    each do |x|
      if none
        best = x
        none = false
      elsif block_given?
        best = x if __order(yield(x, best), x, best) > 0
      elsif x.__above?(best)
        best = x
      end
    end
    best
  end

  def min_by
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

  def max_by
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

  def each_entry
    each { |x| yield(x) }
    self
  end

  def cycle(times)
    n = 0
    while n < times
      each { |x| yield(x) }
      n += 1
    end
    nil
  end

  def map
    out = []
    each { |x| out << yield(x) }
    out
  end

  def collect
    out = []
    each { |x| out << yield(x) }
    out
  end

  def to_a
    out = []
    each { |x| out << x }
    out
  end

  def entries
    out = []
    each { |x| out << x }
    out
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

  def first(count)
    to_a.first(count)
  end

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
    to_a.minmax
  end

  def reverse_each
    to_a.reverse_each { |x| yield(x) }
    self
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
end
