# frozen_string_literal: true

# Methods of numbers that give arrays, and what iterators of numbers without a block give one after the other. An
# assignment of `divmod` to two variables makes no array.
class Integer
  def to_s(base = 10)
    radix = __c_int(base)
    raise ArgumentError, "invalid radix #{radix}" if radix < 2 || radix > 36

    n = __places(radix)
    text = __string(n)
    text.__figures(self, n, radix)
    text.__coded(n, 3)
  end

  alias inspect to_s

  # Adds a pair of an element, of which it has this number, to the groups of the section. Gives the next number.
  def __pair(key, value)
    if key.is_a?(::Array)
      key.__key_parts
      __emit_parts(value, self)
    else
      __emit_pair(key, value, self)
    end
    self + 1
  end

  # The same where the value compares so with another. Values that are no numbers are not for tables: where there may
  # be one, the program does not run.
  def __pair_above(key, value, other)
    return __pair(key, value) unless value.is_a?(::Integer) || value.is_a?(::Float)

    value > other ? __pair(key, value) : self
  end

  def __pair_below(key, value, other)
    return __pair(key, value) unless value.is_a?(::Integer) || value.is_a?(::Float)

    value < other ? __pair(key, value) : self
  end

  def __pair_from(key, value, other)
    return __pair(key, value) unless value.is_a?(::Integer) || value.is_a?(::Float)

    value >= other ? __pair(key, value) : self
  end

  def __pair_up_to(key, value, other)
    return __pair(key, value) unless value.is_a?(::Integer) || value.is_a?(::Float)

    value <= other ? __pair(key, value) : self
  end

  def chr(_encoded = (none = true))
    __chr_form unless none
    # Ruby does not name one that is an object
    raise RangeError, "bignum out of char range" if self < -4_611_686_018_427_387_904 || self > 4_611_686_018_427_387_903
    raise RangeError, "#{self} out of char range" if self < 0 || self > 255

    text = __string(1)
    text.__set(0, self)
    text.__coded(1, self < 128 ? 3 : 2)
  end

  def divmod(other)
    return to_r.divmod(other) if other.is_a?(Rational)
    return Complex(self, 0).divmod(other) if other.is_a?(Complex)

    q, r = self.divmod(other)
    [q, r]
  end

  def digits(base = 10, *more)
    raise Math::DomainError, "out of domain" if self < 0

    raise ArgumentError, "wrong number of arguments (given #{more.size + 1}, expected 0..1)" if more.size > 0
    raise TypeError, "no implicit conversion of nil into Integer" if base.nil?

    base = __int(base)
    raise ArgumentError, "negative radix" if base < 0
    raise ArgumentError, "invalid radix #{base}" if base < 2

    out = [self % base]
    n = self / base
    while n > 0
      out << n % base
      n /= base
    end
    out
  end

  # As Kernel's, without asking `<=>`, which the program may have redefined: then Kernel's are called.
  def __above?(other)
    return self > other if other.is_a?(Integer)

    c = self <=> other
    __uncomparable(other) if c.nil?
    c > 0
  end

  def __below?(other)
    return self < other if other.is_a?(Integer)

    c = self <=> other
    __uncomparable(other) if c.nil?
    c < 0
  end

  # `self[from..]`, whose Range has been given an end
  def __bits_from(range)
    self >> range.begin
  end

  # `self[..to]`
  def __bits_up_to(range)
    last = range.exclude_end? ? range.end - 1 : range.end
    return 0 if range.end < 0 || last < 0

    none = last > 62 ? self == 0 : self & ((1 << last) * 2 - 1) == 0
    raise ArgumentError, "The beginless range for Integer#[] results in infinity" unless none

    0
  end

  def gcdlcm(other)
    [gcd(other), lcm(other)]
  end

  def coerce(other)
    other.is_a?(Integer) ? [other, self] : [Float(other), to_f]
  end

  def i
    Complex.__make(0, self)
  end

  def to_c
    Complex.__make(self, 0)
  end

  def rect
    [self, 0]
  end
  alias rectangular rect

  def polar
    [abs, arg]
  end

  def __list_times
    (0...self).to_a
  end

  # The same as Ranges, where only their numbers matter.
  def __span_times
    0...self
  end

  def __span_upto(last)
    last.is_a?(Integer) ? self..last : (self..last).to_a
  end

  def __list_upto(last)
    (self..last).to_a
  end

  def __list_downto(last)
    (last..self).to_a.reverse
  end
end

class Integer
  # The Float of that place.
  def __float_at
    self < 0 ? -(-self).__as_bits : __as_bits
  end
end

class Float
  # The number of its place among all Floats, from that of zero on.
  def __place
    bits = abs.__bits
    self < 0.0 ? -bits : bits
  end

  def coerce(other)
    [Float(other), self]
  end

  def i
    Complex.__make(0, self)
  end

  def to_c
    Complex.__make(self, 0)
  end

  def rect
    [self, 0]
  end
  alias rectangular rect

  def polar
    [abs, arg]
  end

  # Exact: the fraction that the Float is.
  def to_r
    # raises FloatDomainError
    to_i if nan? || infinite?
    fraction, power = Math.frexp(self)
    n = Math.ldexp(fraction, 53).to_i
    power -= 53
    while n.even? && power < 0
      n /= 2
      power += 1
      break if n == 0
    end
    return Rational.__make(0, 1) if n == 0

    power < 0 ? Rational.__make(n, 2**-power) : Rational.__make(n * 2**power, 1)
  end

  def numerator
    nan? || infinite? ? self : to_r.numerator
  end

  def denominator
    nan? || infinite? ? 1 : to_r.denominator
  end

  # To 1 to 14 places behind the point; beyond where there are none, or nothing is left.
  def __behind_point(places, mode)
    return self if self == 0.0 || nan? || infinite?

    _, power = Math.frexp(self)
    # C divides towards zero
    quarter = power < 0 ? -(-power / 4) : power / 4
    third = power < 0 ? -(-power / 3) : power / 3
    return self if places >= 17 - (power > 0 ? quarter : third - 1)
    return 0.0 if places < -(power > 0 ? third + 1 : quarter)

    __many_places if places > 14
    scale = (10**places).to_f
    (mode == 1 ? __half_even(scale) : __half_down(scale)) / scale
  end

  # Units of 1 / scale, as Ruby counts them.
  def __half_even(scale)
    size = abs
    units = size * scale
    # of an infinity Ruby makes NaN
    return size - size if infinite?
    return self * scale if nan? || units.infinite? || self == 0.0

    ahead = 0.0
    if __ruby_rounds_parts
      whole = size.__whole
      ahead = whole * scale
      units = (size - whole) * scale
    end
    whole = units.__whole
    rest = units - whole
    if rest > 0.5
      whole += 1.0
    elsif rest == 0.5 || (ahead + whole + 0.5) / scale <= size
      whole += (ahead + whole) % 2.0
    end
    self < 0.0 ? -(ahead + whole) : ahead + whole
  end

  def __half_down(scale)
    size = abs
    units = size * scale
    return self * scale if nan? || units.infinite? || self == 0.0

    whole = units.__nearest_whole
    whole -= 1.0 if (whole - 0.5) / scale >= size
    self < 0.0 ? -whole : whole
  end

  # Of a Float above zero: floor, and round, as Floats.
  def __whole
    self >= 4_503_599_627_370_496.0 ? self : floor.to_f
  end

  def __nearest_whole
    self >= 4_503_599_627_370_496.0 ? self : round.to_f
  end
  def divmod(other)
    return Complex(self, 0).divmod(other) if other.is_a?(Complex)

    other = other.to_f if other.is_a?(Rational)
    q, r = self.divmod(other)
    [q, r]
  end
end

module Numeric
  def clone(freeze: true)
    __freeze_form unless freeze.nil? || freeze == true || freeze == false
    raise ArgumentError, "can't unfreeze #{self.class}" if freeze == false

    self
  end

  def __list_step(limit = nil, step = 1, by: step, to: limit)
    __no_limit if to.nil?
    raise NoMemoryError, "failed to allocate memory" if to.is_a?(Float) && to.infinite? && (to > 0) == (by > 0)

    out = []
    step(to, by) { |x| out << x }
    out
  end

  # How many it goes through; there may be no end to them.
  def __step_size(limit = nil, step = 1, by: step, to: limit)
    return Float::INFINITY if to.nil?
    return Float::INFINITY if to.is_a?(Float) && to.infinite? && (to > 0) == (by > 0)

    __list_step(to, by).size
  end
end

module Math
  # The logarithm of what the gamma function has, and its sign.
  def lgamma(number)
    x = Math.ldexp(number, 0)
    raise Math::DomainError, "Numerical argument is out of domain - lgamma" if x == -Float::INFINITY
    return [Float::INFINITY, 1] if x == Float::INFINITY
    return [Float::INFINITY, 1.0 / x < 0 ? -1 : 1] if x == 0.0

    # between negative Integers it changes its sign; Floats of this size are Integers
    whole = x < 0.0 && (x <= -4_503_599_627_370_496.0 || x.floor == x)
    negative = whole ? __ruby_negates_poles : x < 0.0 && x.floor.odd?
    [x.__log_gamma, negative ? -1 : 1]
  end

  def frexp(number)
    x = Math.ldexp(number, 0)
    return [x, 0] if x == 0.0 || x.nan? || x.infinite?

    power = (x.__bits >> 52) & 0x7ff
    power = ((Math.ldexp(x, 54).__bits >> 52) & 0x7ff) - 54 if power == 0
    power -= 1022
    [Math.ldexp(x, -power), power]
  end
end
