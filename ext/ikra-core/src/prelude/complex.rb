# frozen_string_literal: true

# Complexes of Integers and Floats. Their parts are computed as in Ruby: an Integer 0 adds nothing, not even to -0.0,
# and makes any product 0.
class Complex
  def self.rect(real, imaginary = 0)
    Complex.__make(real.__part, imaginary.__part)
  end

  def self.rectangular(real, imaginary = 0)
    Complex.__make(real.__part, imaginary.__part)
  end

  def self.polar(length, angle = Complex.__make(length))
    length.__part
    angle.__part
    if length == 0 || angle == 0
      Complex.__make(length, 0.0)
    elsif angle.is_a?(Float) && angle == Math::PI
      Complex.__make(-length, 0.0)
    elsif angle.is_a?(Float) && angle == Math::PI / 2
      Complex.__make(0.0, length)
    elsif angle.is_a?(Float) && angle == Math::PI + Math::PI / 2
      Complex.__make(0.0, -length)
    else
      Complex.__make(length * Math.cos(angle), length * Math.sin(angle))
    end
  end

  def real
    __real
  end

  def imaginary
    __imaginary
  end

  def imag
    __imaginary
  end

  def real?
    false
  end

  def rect
    [__real, __imaginary]
  end

  def rectangular
    [__real, __imaginary]
  end

  def polar
    [abs, arg]
  end

  def abs
    a = __real
    b = __imaginary
    return Math.hypot(a, b) if a.is_a?(Float) && b.is_a?(Float)

    if a == 0
      a.is_a?(Float) ? b.abs.to_f : b.abs
    elsif b == 0
      b.is_a?(Float) ? a.abs.to_f : a.abs
    else
      Math.hypot(a, b)
    end
  end

  def magnitude
    abs
  end

  def abs2
    a = __real
    b = __imaginary
    (a * a).__plus(b * b)
  end

  def arg
    Math.atan2(__imaginary, __real)
  end

  def angle
    arg
  end

  def phase
    arg
  end

  def conj
    Complex.__make(__real, -__imaginary)
  end

  def conjugate
    Complex.__make(__real, -__imaginary)
  end

  def -@
    Complex.__make(-__real, -__imaginary)
  end

  def clone(freeze: true)
    __freeze_form unless freeze.nil? || freeze == true || freeze == false
    raise ArgumentError, "can't unfreeze #{self.class}" if freeze == false

    self
  end

  def +@
    self
  end

  def +(other)
    if other.is_a?(Complex)
      Complex.__make(__real.__plus(other.__real), __imaginary.__plus(other.__imaginary))
    elsif other.is_a?(Integer) || other.is_a?(Float)
      Complex.__make(__real.__plus(other), __imaginary)
    else
      __uncoercible(other)
    end
  end

  def -(other)
    if other.is_a?(Complex)
      Complex.__make(__real - other.__real, __imaginary - other.__imaginary)
    elsif other.is_a?(Integer) || other.is_a?(Float)
      Complex.__make(__real - other, __imaginary)
    else
      __uncoercible(other)
    end
  end

  def *(other)
    a = __real
    b = __imaginary
    if other.is_a?(Complex)
      c = other.__real
      d = other.__imaginary
      e = (a * c) - (b * d)
      f = (a * d).__plus(b * c)
      return Complex.__make(e, f) unless (e.is_a?(Float) && e.nan?) || (f.is_a?(Float) && f.nan?)

      # zero times what is infinite is zero
      Complex.__make(a.__safely_by(c) - b.__safely_by(d), a.__safely_by(d).__plus(b.__safely_by(c)))
    elsif other.is_a?(Integer) || other.is_a?(Float)
      Complex.__make(a * other, b * other)
    else
      __uncoercible(other)
    end
  end

  def /(other)
    if other.is_a?(Complex)
      other.__dividing(__real, __imaginary)
    elsif other.is_a?(Integer) || other.is_a?(Float)
      Complex.__make(__real.quo(other), __imaginary.quo(other))
    else
      __uncoercible(other)
    end
  end

  # As Ruby's own. A power by an Integer is made of squares. In newer Rubies it is exact where the angle is a multiple
  # of an eighth. A power by another number is computed in polar form.
  def **(other)
    if other.is_a?(Rational)
      return self**other.numerator if other.denominator == 1

      # Integers that are 0 or 1 have powers that are Rationals
      length = abs
      __complex_power if length.is_a?(Integer) && length <= 1
      other = other.to_f
    elsif other.is_a?(Complex)
      imaginary = other.__imaginary
      return self**other.__real if imaginary.is_a?(Integer) && imaginary == 0

      return __complex_exponent(other.__real, imaginary)
    end
    if other.is_a?(Integer)
      __integer_exponent(other)
    elsif other.is_a?(Float)
      Complex.polar(abs**other, arg * other)
    else
      __uncoercible(other)
    end
  end

  def __complex_exponent(real, imaginary)
    length = Math.log(abs)
    angle = arg
    Complex.polar(Math.exp((real * length) - (imaginary * angle)), (angle * real).__plus(imaginary * length))
  end

  def __integer_exponent(n)
    return Complex.__make(1, 0) if n == 0

    a = __real
    b = __imaginary
    return Complex.__make(a, b) if n == 1
    if __ruby_knows_eighths
      return __by_eighths(a, 0, n) if b == 0
      return __by_eighths(b, 2, n) if a == 0
      return __by_eighths(a, 1, n) if a == b
      return __by_eighths(b, 3, n) if a == -b
    end
    return __times_itself(n) if n > 0

    __complex_power if a.is_a?(Integer) && b.is_a?(Integer)
    (1.quo(self)).__times_itself(-n)
  end

  # Of x, or of x in both parts, turned by so many eighths.
  def __by_eighths(x, eighths, n)
    if x < 0
      x = -x
      eighths += 4
    end
    __complex_power if x.is_a?(Integer) && n < 0
    power = if eighths.even?
      x.__powered(n)
    else
      half = (2 * x * x).__powered(n / 2)
      n.odd? ? half * x : half
    end
    zero = power.is_a?(Float) ? 0.0 : 0
    case (eighths * n) % 8
    when 0 then Complex.__make(power, zero)
    when 1 then Complex.__make(power, power)
    when 2 then Complex.__make(zero, power)
    when 3 then Complex.__make(-power, power)
    when 4 then Complex.__make(-power, zero)
    when 5 then Complex.__make(-power, -power)
    when 6 then Complex.__make(zero, -power)
    else Complex.__make(power, -power)
    end
  end

  def __times_itself(n)
    a = __real
    b = __imaginary
    return Complex.__make(a**n, b) if b == 0

    if a == 0
      power = n & 2 == 0 ? b**n : -(b**n)
      return n.odd? ? Complex.__make(a, power) : Complex.__make(power, a)
    end
    product = self
    n -= 1
    while n > 0
      while n.even?
        square = (a * a) - (b * b)
        b = 2 * a * b
        a = square
        n /= 2
      end
      product *= Complex.__make(a, b)
      n -= 1
    end
    product
  end

  def quo(other)
    self / other
  end

  def fdiv(number)
    return __uncoercible(number) unless number.is_a?(Numeric)

    Complex.__make(__real.fdiv(number), __imaginary.fdiv(number))
  end

  def ==(other)
    if other.is_a?(Complex)
      __real == other.__real && __imaginary == other.__imaginary
    elsif other.is_a?(Integer) || other.is_a?(Float) || other.is_a?(Rational)
      __real == other && __imaginary == 0
    else
      other == self
    end
  end

  def eql?(other)
    return false unless other.is_a?(Complex)

    __real.eql?(other.__real) && __imaginary.eql?(other.__imaginary)
  end

  def zero?
    __real == 0 && __imaginary == 0
  end

  def nonzero?
    zero? ? nil : self
  end

  def finite?
    __real.finite? && __imaginary.finite?
  end

  def infinite?
    __real.infinite? || __imaginary.infinite? ? 1 : nil
  end

  def to_c
    self
  end

  def __added_to(number)
    Complex.__make(number.__plus(__real), __imaginary)
  end

  def __taken_from(number)
    Complex.__make(number - __real, 0 - __imaginary)
  end

  def __times(number)
    a = __real
    b = __imaginary
    if number.is_a?(Integer)
      Complex.__make(a * number, b * number)
    else
      Complex.__make(number.__safely_by(a) - 0.__safely_by(b), number.__safely_by(b).__plus(0.__safely_by(a)))
    end
  end

  def __divides(number)
    __dividing(number, 0)
  end
  alias __quotient_of __divides

  def __equals(number)
    self == number
  end

  # a Complex of these parts by this one
  def __dividing(a, b)
    c = __real
    d = __imaginary
    if c.abs > d.abs
      r = d.quo(c)
      n = c * (r * r).__plus(1)
      Complex.__make(a.__plus(b * r).quo(n), (b - (a * r)).quo(n))
    else
      r = c.quo(d)
      n = d * (r * r).__plus(1)
      Complex.__make((a * r).__plus(b).quo(n), ((b * r) - a).quo(n))
    end
  end
end

class Integer
  # Of Complex: below zero it is refused before.
  def __powered(n)
    n < 0 ? 0 : self**n
  end
end

class Float
  def __powered(n)
    self**n
  end
end
