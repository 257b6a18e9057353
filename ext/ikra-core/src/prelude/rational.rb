# frozen_string_literal: true

# Rationals of two Integers in lowest terms, the denominator above zero. They are reduced before they are multiplied, so
# that they leave 64 bits as late as can be.
class Rational
  def numerator
    __numerator
  end

  def denominator
    __denominator
  end

  def -@
    Rational.__make(-__numerator, __denominator)
  end

  def clone(freeze: true)
    __freeze_form unless freeze.nil? || freeze == true || freeze == false
    raise ArgumentError, "can't unfreeze #{self.class}" if freeze == false

    self
  end

  def +@
    self
  end

  def abs
    Rational.__make(__numerator.abs, __denominator)
  end
  alias magnitude abs

  def zero?
    __numerator == 0
  end

  def nonzero?
    __numerator == 0 ? nil : self
  end

  def positive?
    __numerator > 0
  end

  def negative?
    __numerator < 0
  end

  def integer?
    false
  end

  def finite?
    true
  end

  def infinite?
    nil
  end

  def real?
    true
  end

  def real
    self
  end

  def to_r
    self
  end

  # The simplest Rational that is less than `within` away, or at most so far below.
  def rationalize(within = (exact = true))
    return self if exact

    found = abs.__simplified(within.abs)
    __numerator < 0 ? -found : found
  end

  def __simplified(tolerance)
    least = self - tolerance
    most = self + tolerance
    return self if least == most

    least.__simplest_to(most)
  end

  # The Rational of the smallest denominator from this on, and below another.
  def __simplest_to(most)
    b = __denominator
    d = most.__denominator
    (__numerator / b).__simplest(__numerator % b, b, most.__numerator / d, most.__numerator % d, d)
  end

  def to_f
    __numerator.fdiv(__denominator)
  end

  def floor(digits = (none = true))
    none ? __numerator / __denominator : __to_places(digits) { |x| x.floor }
  end

  def ceil(digits = (none = true))
    return __to_places(digits) { |x| x.ceil } unless none

    q = __numerator / __denominator
    __numerator % __denominator == 0 ? q : q + 1
  end

  def truncate(digits = (none = true))
    return __to_places(digits) { |x| x.truncate } unless none

    __numerator < 0 ? ceil : floor
  end

  # An Integer, or a Rational where digits behind the point are asked for. The block makes an Integer of a Rational.
  def __to_places(digits)
    raise TypeError, "not an integer" unless digits.is_a?(Integer)

    if digits > 0
      Rational.__make(yield(self * (10**digits)), 1) / (10**digits)
    else
      yield(self / (10**-digits)) * (10**-digits)
    end
  end

  def to_i
    truncate
  end

  def to_int
    truncate
  end

  def round(digits = (none = true), half: nil)
    mode = __rounds(half)
    none ? __rounded(mode) : __to_places(digits) { |x| x.__rounded(mode) }
  end

  def __rounded(mode)
    q = __numerator / __denominator
    rest = __numerator % __denominator
    other = __denominator - rest
    return rest > other ? q + 1 : q if rest != other

    up = if mode == 0
      __numerator > 0
    else
      mode == 1 ? q.odd? : __numerator < 0
    end
    up ? q + 1 : q
  end

  def +(other)
    if other.is_a?(Rational)
      g = __denominator.gcd(other.__denominator)
      n = (__numerator * (other.__denominator / g)) + (other.__numerator * (__denominator / g))
      __reduced(n, g, other)
    elsif other.is_a?(Integer)
      Rational.__make(__numerator + (other * __denominator), __denominator)
    elsif other.is_a?(Float)
      to_f + other
    else
      __uncoercible(other)
    end
  end

  def -(other)
    if other.is_a?(Rational)
      g = __denominator.gcd(other.__denominator)
      n = (__numerator * (other.__denominator / g)) - (other.__numerator * (__denominator / g))
      __reduced(n, g, other)
    elsif other.is_a?(Integer)
      Rational.__make(__numerator - (other * __denominator), __denominator)
    elsif other.is_a?(Float)
      to_f - other
    else
      __uncoercible(other)
    end
  end

  def *(other)
    if other.is_a?(Rational)
      __scaled(other.__numerator, other.__denominator)
    elsif other.is_a?(Integer)
      __scaled(other, 1)
    elsif other.is_a?(Float)
      to_f * other
    else
      __uncoercible(other)
    end
  end

  def /(other)
    if other.is_a?(Rational)
      __divided(other.__numerator, other.__denominator)
    elsif other.is_a?(Integer)
      __divided(other, 1)
    elsif other.is_a?(Float)
      to_f / other
    else
      __uncoercible(other)
    end
  end
  alias quo /

  def fdiv(other)
    return to_f / 0.0 if other == 0
    return to_f / other if other.is_a?(Float)

    (self / other).to_f
  end

  def div(other)
    raise ZeroDivisionError, "divided by 0" if other == 0

    (self / other).floor
  end

  def %(other)
    self - (other * div(other))
  end
  alias modulo %

  def remainder(other)
    rest = self % other
    return rest if rest == 0 || self < 0 == other < 0
    return self if other.is_a?(Float) && other.infinite?

    rest - other
  end

  def divmod(other)
    [div(other), self % other]
  end

  def **(other)
    if other.is_a?(Integer)
      __power(other)
    elsif other.is_a?(Float)
      to_f**other
    elsif other.is_a?(Rational)
      __rational_exponent
    else
      __uncoercible(other)
    end
  end
  alias pow **

  def ==(other)
    if other.is_a?(Rational)
      __numerator == other.__numerator && __denominator == other.__denominator
    elsif other.is_a?(Integer)
      __numerator == other && __denominator == 1
    elsif other.is_a?(Float)
      to_f == other
    else
      other == self
    end
  end

  def eql?(other)
    other.is_a?(Rational) && __numerator == other.__numerator && __denominator == other.__denominator
  end

  def <(other)
    __below?(other)
  end

  def >(other)
    __above?(other)
  end

  def <=(other)
    order = self <=> other
    __uncomparable(other) if order.nil?
    order <= 0
  end

  def >=(other)
    order = self <=> other
    __uncomparable(other) if order.nil?
    order >= 0
  end

  def between?(least, greatest)
    self >= least && self <= greatest
  end

  def clamp(least, greatest = __clamp_form)
    # raises it in the words of the Ruby that runs
    0.clamp(1, 0) if !least.nil? && !greatest.nil? && least.__above?(greatest)
    return least if !least.nil? && self < least

    !greatest.nil? && self > greatest ? greatest : self
  end

  def <=>(other)
    if other.is_a?(Rational)
      __order_of(other.__numerator, other.__denominator)
    elsif other.is_a?(Integer)
      __order_of(other, 1)
    elsif other.is_a?(Float)
      to_f <=> other
    else
      0 <=> other
    end
  end

  # What operators of an Integer or a Float ask.
  def __added_to(number)
    self + number
  end

  def __taken_from(number)
    number.is_a?(Float) ? number - to_f : Rational.__make(number, 1) - self
  end

  def __times(number)
    self * number
  end

  def __divides(number)
    number.is_a?(Float) ? number / to_f : Rational.__make(number, 1) / self
  end
  alias __quotient_of __divides

  def __fdivides(number)
    number.is_a?(Float) ? number / to_f : Rational.__make(number, 1).fdiv(self)
  end

  def __div_of(number)
    raise ZeroDivisionError, "divided by 0" if __numerator == 0

    number.is_a?(Float) ? (number / to_f).floor : Rational.__make(number, 1).div(self)
  end

  def __modulo_of(number)
    number.is_a?(Float) ? number % to_f : Rational.__make(number, 1) % self
  end

  def __equals(number)
    self == number
  end

  def __compared_by(number)
    number.is_a?(Float) ? number <=> to_f : Rational.__make(number, 1) <=> self
  end

  def __above(number)
    number.is_a?(Float) ? number < to_f : (self <=> number) > 0
  end

  def __at_least(number)
    number.is_a?(Float) ? number <= to_f : (self <=> number) >= 0
  end

  def __below(number)
    number.is_a?(Float) ? number > to_f : (self <=> number) < 0
  end

  def __at_most(number)
    number.is_a?(Float) ? number >= to_f : (self <=> number) <= 0
  end

  # n over the least common multiple of both denominators, of which g is the greatest common divisor.
  def __reduced(n, g, other)
    h = n.gcd(g)
    Rational.__make(n / h, (__denominator / g) * (other.__denominator / h))
  end

  # This times n over d.
  def __scaled(n, d)
    g = __numerator.gcd(d)
    h = __denominator.gcd(n)
    Rational.__make((__numerator / g) * (n / h), (__denominator / h) * (d / g))
  end

  # This by n over d.
  def __divided(n, d)
    raise ZeroDivisionError, "divided by 0" if n == 0

    n < 0 ? __scaled(-d, -n) : __scaled(d, n)
  end

  def __power(exponent)
    if exponent >= 0
      Rational.__make(__numerator**exponent, __denominator**exponent)
    elsif __numerator == 0
      raise ZeroDivisionError, "divided by 0"
    elsif __numerator < 0
      Rational.__make((-__denominator)**-exponent, (-__numerator)**-exponent)
    else
      Rational.__make(__denominator**-exponent, __numerator**-exponent)
    end
  end

  # The order of this and n over d. Cross products may leave 64 bits; whole parts and what is left of them do not.
  def __order_of(n, d)
    a = __numerator
    b = __denominator
    loop do
      p = a / b
      q = n / d
      return p <=> q if p != q

      a %= b
      n %= d
      return a <=> n if a == 0 || n == 0

      # a/b and n/d, both between 0 and 1, are ordered as d/n and b/a
      a, b, n, d = d, n, b, a
    end
  end
end

class Integer
  # This over another, in lowest terms.
  def __over(other)
    raise ZeroDivisionError, "divided by 0" if other == 0

    g = gcd(other)
    other < 0 ? Rational.__make(-(self / g), -(other / g)) : Rational.__make(self / g, other / g)
  end

  def to_r
    Rational.__make(self, 1)
  end

  def rationalize(_within = nil)
    Rational.__make(self, 1)
  end

  # The Rational of the smallest denominator from self + n/d on, and below m + k/e, by continued fractions. Both n/d and
  # k/e lie between 0 and 1. Only numerator and denominator of the answer may leave 64 bits.
  def __simplest(n, d, m, k, e)
    least = self
    p, q, next_p, next_q = 0, 1, 1, 0
    loop do
      whole = n > 0 ? least + 1 : least
      return Rational.__make((whole * next_p) + p, (whole * next_q) + q) if whole < m || (whole == m && k > 0)

      whole -= 1
      p, q, next_p, next_q = next_p, next_q, (whole * next_p) + p, (whole * next_q) + q
      # what both are above the whole number, upside down
      below = n > 0 ? n : d
      above = ((m - whole) * e) + k
      least, n, d, m, k, e = e / above, e % above, above, d / below, d % below, below
    end
  end
end

class Float
  # The simplest Rational that is this Float, or that is about as near as `within`.
  def rationalize(within = (exact = true))
    found = exact ? abs.__simplest_decimal : abs.__simplified(within.abs)
    self < 0.0 ? -found : found
  end

  # Of a Float that is not negative: between the two points halfway to the Floats beside it.
  def __simplest_decimal
    # raises FloatDomainError
    to_i if nan? || infinite?
    fraction, power = Math.frexp(self)
    n = Math.ldexp(fraction, 53).to_i
    power -= 53
    return Rational.__make(0, 1) if n == 0
    return Rational.__make(n * (2**power), 1) if power >= 0

    # (2 n - 1) and (2 n + 1), by 2 to this power
    power = 1 - power
    least = (2 * n) - 1
    most = (2 * n) + 1
    return __simplest_small(least, most, power) if power > 62

    scale = 2**power
    (least / scale).__simplest(least % scale, scale, most / scale, most % scale, scale)
  end

  # The same where 2 to the power leaves 64 bits: what lies between the reciprocals, upside down.
  def __simplest_small(least, most, power)
    m, k = most.__divides_power(power)
    w, r = least.__divides_power(power)
    found = m.__simplest(k, most, w, r, least)
    Rational.__make(found.__denominator, found.__numerator)
  end

  def __simplified(tolerance)
    least = self - tolerance
    most = self + tolerance
    return to_r if least == most

    least.__simplest_to(most)
  end

  # As that of a Rational, with Floats as Ruby computes with them.
  def __simplest_to(most)
    least = self
    p, q, next_p, next_q = 0, 1, 1, 0
    loop do
      whole = least.ceil
      return Rational.__make((whole * next_p) + p, (whole * next_q) + q) if whole < most

      whole -= 1
      p, q, next_p, next_q = next_p, next_q, (whole * next_p) + p, (whole * next_q) + q
      least, most = 1.0 / (most - whole), 1.0 / (least - whole)
    end
  end
end

class Integer
  # The quotient and the rest of 2 to a power above 62 by this, which has at most 55 bits.
  def __divides_power(power)
    quotient = (1 << 62) / self
    rest = (1 << 62) % self
    left = power - 62
    while left > 0
      bits = left < 8 ? left : 8
      rest <<= bits
      quotient = (quotient * (1 << bits)) + (rest / self)
      rest %= self
      left -= bits
    end
    [quotient, rest]
  end
end

module Kernel
  def Rational(numerator, denominator = 1) # rubocop:disable Naming/MethodName
    a = numerator.__exact
    b = denominator.__exact
    a.is_a?(Integer) && b.is_a?(Integer) ? a.__over(b) : Rational.__make(1, 1) * a / b
  end
end
