# frozen_string_literal: true

# Methods of every object, and how the prelude compares.
module Kernel
  def then
    yield(self)
  end

  def yield_self
    yield(self)
  end

  def tap
    yield(self)
    self
  end

  def <=>(other)
    equal?(other) || self == other ? 0 : nil
  end

  # `self > other` as sorting sees it, by `<=>`.
  def __above?(other)
    return self > other if is_a?(Integer) && other.is_a?(Integer)

    c = self <=> other
    __uncomparable(other) if c.nil?
    c > 0
  end

  # What a block that compares gave.
  def __order(order, one, other)
    one.__uncomparable(other) if order.nil?
    order
  end
end

# By the user's `<=>`.
module Comparable
  def ==(other)
    return true if equal?(other)

    c = self <=> other
    c.nil? ? false : c == 0
  end

  def >(other)
    c = self <=> other
    __uncomparable(other) if c.nil?
    c > 0
  end

  def >=(other)
    c = self <=> other
    __uncomparable(other) if c.nil?
    c >= 0
  end

  def <(other)
    c = self <=> other
    __uncomparable(other) if c.nil?
    c < 0
  end

  def <=(other)
    c = self <=> other
    __uncomparable(other) if c.nil?
    c <= 0
  end

  def between?(least, greatest)
    self >= least && self <= greatest
  end

  def clamp(least, greatest)
    return least if self < least
    return greatest if self > greatest

    self
  end
end
