# frozen_string_literal: true

# Methods of every object, and how the prelude compares.
module Kernel
  def then
    yield(self)
  end
  alias yield_self then

  def tap
    yield(self)
    self
  end

  # What `*` makes of a value in a list, and what is left of it between the first and the last parts.
  def __splat
    [self]
  end

  def __rest(from, _back)
    from == 0 ? [self] : []
  end

  # A new array of as many elements as the block gives, one for each index.
  def __build(count)
    out = __buffer(count)
    i = 0
    while i < count
      out.__put(i, yield(i))
      i += 1
    end
    out
  end

  # `Array.new(count) { … }`
  def __new_array(count)
    raise ArgumentError, "negative array size" if count < 0

    __build(count) { |i| yield(i) }
  end

  # `throw` goes to its end.
  def catch(tag = nil)
    yield(tag)
  end

  # `self > other` as sorting sees it, by `<=>`.
  def __above?(other)
    return self > other if is_a?(Integer) && other.is_a?(Integer)

    c = self <=> other
    __uncomparable(other) if c.nil?
    c > 0
  end

  def __below?(other)
    return self < other if is_a?(Integer) && other.is_a?(Integer)

    c = self <=> other
    __uncomparable(other) if c.nil?
    c < 0
  end

  # What a block that compares gave.
  def __order(order, one, other)
    one.__uncomparable(other) if order.nil?
    order
  end

  # What a number's operators ask their argument, where that may be a Complex, a Rational or a Range.
  def __added_to(number)
    number + self
  end

  def __taken_from(number)
    number - self
  end

  def __times(number)
    number * self
  end

  def __divides(number)
    number / self
  end

  def __exponent_of(number)
    number**self
  end

  def __equals(number)
    number == self
  end

  def __compared_by(number)
    number <=> self
  end

  def __above(number)
    number < self
  end

  def __at_least(number)
    number <= self
  end

  def __below(number)
    number > self
  end

  def __at_most(number)
    number >= self
  end

  def __same_range(_other)
    false
  end

  def __eql_range(_other)
    false
  end
end
