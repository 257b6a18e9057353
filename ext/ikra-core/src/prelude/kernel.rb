# frozen_string_literal: true

# Nothing, in a list.
class NilClass
  def to_a
    []
  end

  def inspect
    "nil".__coded(3, 3)
  end

  def to_s
    "".__coded(0, 3).__as_frozen
  end
end

class TrueClass
  def to_s
    "true".__coded(4, 3).__as_frozen
  end
  alias inspect to_s
end

class FalseClass
  def to_s
    "false".__coded(5, 3).__as_frozen
  end
  alias inspect to_s
end

# Methods of every object, and how the prelude compares.
module Kernel
  # What `join` makes of an element.
  def __joinable
    __no_text(self)
    __no_list(self)
    __asked.to_s.__piece
  end

  # What interpolation makes of it.
  def __to_text
    __asked.to_s.__piece
  end

  def respond_to_missing?(_name, _private = false)
    false
  end

  def dup
    copy = __copy
    copy.__begin_dup(self)
    copy
  end

  def clone(freeze: nil)
    __freeze_form unless freeze.nil? || freeze == true || freeze == false
    unless __copied?
      raise ArgumentError, "can't unfreeze #{self.class}" if freeze == false

      return self
    end
    copy = __copy
    if freeze.nil?
      copy.__begin_clone(self)
      copy.__freeze if __frozen?
    else
      copy.__begin_clone_with(self, freeze)
      copy.__freeze if freeze
    end
    copy
  end

  # They are private.
  def __begin_dup(other)
    initialize_dup(other)
  end

  def __begin_clone(other)
    initialize_clone(other)
  end

  def __begin_clone_with(other, freeze)
    initialize_clone(other, freeze: freeze)
  end

  # `freeze` is what `clone` was given.
  def initialize_clone(other, freeze: nil) # rubocop:disable Lint/UnusedMethodArgument
    initialize_copy(other)
  end

  def initialize_dup(other)
    initialize_copy(other)
  end

  # What `__copy` gave has everything.
  def initialize_copy(_other)
    self
  end

  # What a Hash has for keys that are not there, in a pattern of any object.
  def __rest_default
    nil
  end

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
    self.__asked.respond_to?(:to_a, true) ? self.__asked.to_a : [self]
  end

  def __rest(from, back)
    from + back == 0 ? [self] : []
  end

  def __not_iterated
    raise TypeError, "can't iterate from #{self.class}"
  end

  def __negative_size
    raise ArgumentError, "negative array size (or size too big)"
  end

  # Which way `bsearch` goes: to smaller ones where it is negative, to larger ones, or no further. With -2 it goes to
  # smaller ones, and this one may be what is looked for.
  def __side(answer)
    if answer == true
      -2
    elsif !answer
      1
    elsif answer.is_a?(Integer) || answer.is_a?(Float) || answer.is_a?(Rational)
      order = answer <=> 0
      raise ArgumentError, "comparison of #{answer.class} with 0 failed" if order.nil?

      order
    else
      raise TypeError, "wrong argument type #{answer.class} (must be numeric, true, false or nil)"
    end
  end

  # What `dig` finds a step further on.
  def __dug(at, second = (one = true), third = (two = true), fourth = (three = true))
    return nil if nil?
    raise TypeError, "#{self.class} does not have #dig method" unless self.__asked.respond_to?(:dig)
    return self.__asked.dig(at) if one
    return self.__asked.dig(at, second) if two

    three ? self.__asked.dig(at, second, third) : self.__asked.dig(at, second, third, fourth)
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

  # How many `min(count)` and the like give.
  def __extremes_count(count)
    n = __int(count)
    raise ArgumentError, "negative size (#{n})" if n < 0
    raise ArgumentError, "too big size" if n > 1_152_921_504_606_846_975

    n
  end

  # `Hash.new`, and `{}`
  def __new_hash(default = (none = true), capacity: 0) # rubocop:disable Lint/UnusedMethodArgument
    raise ArgumentError, "wrong number of arguments (given 1, expected 0)" if block_given? && !none

    __make_hash(__buffer(4), __buffer(4), __buffer(4), __buffer(0), 0, 0, 0, none ? nil : default)
  end

  # No other value is in a Range of two Strings.
  def __between_texts(_from, _to, _exclusive)
    __no_order(self) unless is_a?(Integer) || is_a?(Float) || is_a?(Symbol) || is_a?(Array)
    false
  end

  def __among_characters(_from, _to, _exclusive)
    __no_text(self)
    false
  end

  # `String.new`
  def __new_string(text = (none = true), capacity: 0) # rubocop:disable Lint/UnusedMethodArgument
    none ? "".__coded(0, 2) : "".__text(text).__copy
  end

  # What a Hash keeps of a key.
  def __as_key
    self
  end

  # `Array.new(count) { … }`
  def __new_array(length, _default = (alone = true))
    return length.dup if alone && length.is_a?(Array)

    __no_list(length)
    count = __int(length)
    raise ArgumentError, "negative array size" if count < 0

    __build(count) { |i| yield(i) }
  end

  # `throw` goes to its end.
  def catch(tag = (none = true))
    __no_tag if none
    yield(tag)
  end

  # `self > other` as sorting sees it, by `<=>`.
  def __above?(other)
    c = self.__asked <=> other
    __uncomparable(other) if c.nil?
    c.__asked > 0
  end

  def __below?(other)
    c = self.__asked <=> other
    __uncomparable(other) if c.nil?
    c.__asked < 0
  end

  # `round` of a Float with `half:`, by Ruby's own formulae.
  def __round_float(digits = (none = true), half: nil)
    mode = __rounds(half)
    if mode == 0
      none ? round : round(digits)
    elsif none
      mode == 1 ? __half_even(1.0).to_i : __half_down(1.0).to_i
    else
      # raises what is wrong with the digits
      1.round(digits)
      places = __int(digits)
      if places > 0
        __behind_point(places, mode)
      elsif places == 0
        mode == 1 ? __half_even(1.0).to_i : __half_down(1.0).to_i
      else
        to_i.__round_integer(places, half: half)
      end
    end
  end

  # `round` of an Integer with `half:`.
  def __round_integer(digits = (none = true), half: nil)
    mode = __rounds(half)
    return self if none

    1.round(digits)
    places = __int(digits)
    return round(places) if mode == 0 || places >= 0
    return self == 5_000_000_000_000_000_000 || self == -5_000_000_000_000_000_000 ? 0 : round(places) if places < -18

    unit = 10**-places
    rest = self % unit
    least = self - rest
    up = if rest + rest == unit
      mode == 1 ? (least / unit).odd? : self < 0
    else
      rest + rest > unit
    end
    up ? least + unit : least
  end

  # Which way halves are rounded: 0, away from zero; 1, to what is even; 2, towards zero.
  def __rounds(half)
    if half.nil?
      0
    elsif half.is_a?(Symbol)
      return 0 if half == :up
      return 1 if half == :even
      return 2 if half == :down

      __rounding_mode
      0
    elsif half.is_a?(String)
      return 0 if half == "up"
      return 1 if half == "even"
      return 2 if half == "down"

      __rounding_mode
      0
    else
      __rounding_mode
      0
    end
  end

  # `Integer(text)`, and of what else there is.
  def __to_integer(value, base = (none = true), exception: true)
    if value.is_a?(String)
      number = value.__integer(none ? 0 : __c_int(base))
      return number unless number.nil?

      exception ? value.__no_number(:"Integer()") : nil
    elsif none
      Integer(value)
    else
      __base_form
    end
  end

  def __to_float(value, exception: true)
    if value.is_a?(String)
      number = value.__float(true)
      return number unless number.nil?

      exception ? value.__no_number(:"Float()") : nil
    else
      Float(value)
    end
  end

  # -1, 0 or 1, by `<=>`, as sorting sees it.
  def __compared(other)
    order = self.__asked <=> other
    __uncomparable(other) if order.nil?
    __sign(order)
  end

  def __sign(order)
    if order.__asked > 0
      1
    else
      order.__asked < 0 ? -1 : 0
    end
  end

  # What a block that compares gave.
  def __order(order, one, other)
    one.__uncomparable(other) if order.nil?
    return order if order.is_a?(Integer)
    return 1 if order.__asked > 0

    order.__asked < 0 ? -1 : 0
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

  def __quotient_of(number)
    number.quo(self)
  end

  def __equals(number)
    number == self
  end

  # Comparisons that may come to the same two again go on with these: `trail` says what is being compared.
  def __equal_within(other, _trail, _index, _depth)
    self.__asked == other
  end

  def __eql_within(other, _trail, _index, _depth)
    self.__asked.eql?(other)
  end

  def __order_within(other, _trail, _index, _depth)
    self.__asked <=> other
  end

  def __modulo_of(number)
    number % self
  end

  def __div_of(number)
    number.div(self)
  end

  def __fdivides(number)
    number.fdiv(self)
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

  def __clamps(number)
    number.clamp(self)
  end

  def __same_range(_other)
    false
  end

  def __compare_range(_other)
    nil
  end

  def __eql_range(_other)
    false
  end

  def Complex(real, imaginary = 0) # rubocop:disable Naming/MethodName
    Complex.__make(real.__part, imaginary.__part)
  end

  # The sum of two parts of Complexes.
  def __plus(other)
    return other if is_a?(Integer) && other.is_a?(Float) && self == 0
    return self if is_a?(Float) && other.is_a?(Integer) && other == 0

    self + other
  end

  # Their product: of zero and what is infinite it is zero.
  def __safely_by(other)
    product = self * other
    return product if product.is_a?(Integer)
    return product unless product.nan?

    a = self
    b = other
    if a == 0 && b.is_a?(Float) && !b.nan?
      a * (b < 0 ? -1.0 : 1.0)
    elsif b == 0 && a.is_a?(Float) && !a.nan?
      (a < 0 ? -1.0 : 1.0) * b
    else
      product
    end
  end

  # An Array's own says whether its elements ever change.
  def __unwritten?
    false
  end
end
