# frozen_string_literal: true

# Methods of numbers that give arrays (an assignment to two is of `divmod`'s two results, and makes none); what iterators of numbers without a block give one after the other.
class Integer
  def divmod(other)
    return to_r.divmod(other) if other.is_a?(Rational)

    q, r = self.divmod(other)
    [q, r]
  end

  def digits(base = 10)
    raise Math::DomainError, "out of domain" if self < 0

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

  def __list_times
    (0...self).to_a
  end

  def __list_upto(last)
    (self..last).to_a
  end

  def __list_downto(last)
    (last..self).to_a.reverse
  end
end

class Float
  def divmod(other)
    other = other.to_f if other.is_a?(Rational)
    q, r = self.divmod(other)
    [q, r]
  end
end

module Numeric
  def __list_step(limit = nil, step = 1, by: step, to: limit)
    __no_limit if to.nil?
    out = []
    step(to, by) { |x| out << x }
    out
  end
end
