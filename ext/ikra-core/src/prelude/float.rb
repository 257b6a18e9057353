# frozen_string_literal: true

# Text of Floats.
class Float
  def to_s
    return "NaN".__coded(3, 3) if nan?
    return self > 0.0 ? "Infinity".__coded(8, 3) : "-Infinity".__coded(9, 3) if infinite?

    text = __string(24)
    n = text.__fill_float(self, __powers)
    text.__coded(n, 3)
  end

  alias inspect to_s
end

# What `format` makes of a value, and of its flags: 1 for -, 2 for 0, 4 for +, 8 for a space, 16 for capitals.
module Kernel
  def __format_int(radix, flags, width)
    Integer(self).__format_int(radix, flags, width)
  end

  def __format_float(places, flags, width)
    __format_form if is_a?(Numeric)
    Float(self).__format_float(places, flags, width)
  end

  def __format_text(places, flags, width)
    __asked.to_s.__piece.__format_text(places, flags, width)
  end

  def __format_inspection(places, flags, width)
    __asked.inspect.__format_text(places, flags, width)
  end

  def __format_char(_flags, _width)
    __format_form
  end

  # The value of `"…" % value`: Ruby would take the elements of a list.
  def __format_sole
    known = is_a?(Numeric) || is_a?(String) || nil? || is_a?(TrueClass) || is_a?(FalseClass)
    __format_form unless known
    self
  end
end

class Integer
  def __format_int(radix, flags, width)
    __format_form if self < 0 && radix != 10 && flags & 12 == 0
    n = __places(radix)
    n += 1 if self >= 0 && flags & 12 != 0
    all = n < width ? width : n
    text = __string(all)
    text.__fill_int(self, n, radix, flags, all)
    text.__coded(all, 3)
  end

  # Ruby gives the exact digits.
  def __format_float(places, flags, width)
    n = __places(10)
    n += 1 if self >= 0 && flags & 12 != 0
    n += places + 1 if places > 0
    all = n < width ? width : n
    text = __string(all)
    text.__fill_exact(self, n, places, flags, all)
    text.__coded(all, 3)
  end

  def __format_char(flags, width)
    __format_form unless self >= 0 && self < 128
    chr.__format_text(-1, flags, width)
  end
end

class Float
  def __format_int(radix, flags, width)
    to_i.__format_int(radix, flags, width)
  end

  def __format_float(places, flags, width)
    minus = self < 0.0 || (self == 0.0 && __bits < 0)
    sign = 0
    sign = 32 if flags & 8 != 0
    sign = 43 if flags & 4 != 0
    sign = 45 if minus
    n = sign == 0 ? 0 : 1
    if nan? || infinite?
      n += 3
      all = n < width ? width : n
      text = __string(all)
      text.__fill_word(nan?, sign, n, flags, all)
      return text.__coded(all, 3)
    end
    whole = abs
    # with room for a digit that rounding adds
    count = whole < 9e18 ? whole.to_i.__places(10) + 1 : 310
    digits = __string(count + 1 + places)
    from = 0
    # no more than 59 bits behind the point, or clearly below half of the last place
    if whole < 9e18 && (whole >= 0.0078125 || whole < (0.1**places) * 0.25)
      digits.__fill_fixed(whole, count, places)
    else
      from = whole.__fill_long(digits, count, places)
    end
    from = 1 if from == 0 && digits.__byte(0) == 48
    used = count - from
    used += places + 1 if places > 0
    n += used
    all = n < width ? width : n
    text = __string(all)
    at = flags & 1 != 0 ? 0 : all - n
    text.__fill_byte(0, all, 32)
    if flags & 3 == 2
      text.__fill_byte(0, all, 48)
      text.__set(0, sign) if sign != 0
    elsif sign != 0
      text.__set(at, sign)
    end
    text.__fill_part(at + n - used, digits, from, from + used)
    text.__coded(all, 3)
  end

  # As `__fill_fixed`, by long arithmetic in pieces of 30 bits, the lowest first. Gives where the digits begin.
  def __fill_long(digits, count, places)
    power = ((__bits >> 52) & 0x7ff) - 1075
    m = __bits & 0xf_ffff_ffff_ffff
    if power == -1075
      power = -1074
    else
      m |= 1 << 52
    end
    pieces = __build(40) { |_| 0 }
    size = power > 0 ? power / 30 + 3 : -power / 30 + 1
    # so that the point is between pieces
    shift = power > 0 ? power % 30 : size * 30 + power
    low = power > 0 ? power / 30 : shift / 30
    shift -= low * 30 if power <= 0
    wide = (m & 0x3fff_ffff) << shift
    pieces.__put(low, wide & 0x3fff_ffff)
    wide = (wide >> 30) + ((m >> 30) << shift)
    pieces.__put(low + 1, wide & 0x3fff_ffff)
    pieces.__put(low + 2, wide >> 30)
    if power > 0
      at = count
      used = size
      while used > 0
        rest = 0
        j = used - 1
        while j >= 0
          part = (rest << 30) | pieces.__at(j)
          pieces.__put(j, part / 10)
          rest = part % 10
          j -= 1
        end
        at -= 1
        digits.__set(at, 48 + rest)
        used -= 1 while used > 0 && pieces.__at(used - 1) == 0
      end
      if places > 0
        digits.__set(count, 46)
        digits.__fill_byte(count + 1, count + 1 + places, 48)
      end
      return at
    end
    digits.__fill_byte(0, count, 48)
    digits.__set(count, 46)
    k = 0
    while k < places
      carry = 0
      j = 0
      while j < size
        part = pieces.__at(j) * 10 + carry
        pieces.__put(j, part & 0x3fff_ffff)
        carry = part >> 30
        j += 1
      end
      digits.__set(count + 1 + k, 48 + carry)
      k += 1
    end
    top = pieces.__at(size - 1)
    more = false
    j = 0
    while j < size - 1
      more = true if pieces.__at(j) != 0
      j += 1
    end
    last = places > 0 ? count + places : count - 1
    tie = (top == 1 << 29 && !more) || __near_half?(places)
    digits.__round_up(last) if tie ? digits.__byte(last).odd? : top >= 1 << 29
    0
  end
end

class String
  def __format_text(places, flags, width)
    text = self
    text = self[0, places] if places >= 0
    return text if width <= 0

    flags & 1 != 0 ? text.ljust(width) : text.rjust(width)
  end

  def __format_char(flags, width)
    __format_form unless size == 1
    __format_text(-1, flags, width)
  end
end
