# frozen_string_literal: true

# Strings over their bytes. Nothing in here raises: these are functions of their own, not inlined.
class Integer
  # How many characters it takes in a base, with its sign.
  def __places(radix)
    n = 1
    m = self
    if m < 0
      n = 2
      digit = -m.remainder(radix)
      m = -((m + digit) / radix)
      return n if m == 0

      n += 1
    end
    while m >= radix
      m /= radix
      n += 1
    end
    n
  end

  # A number of 60 bits times one of 126, without the low 126 bits. The last bit is set where it is not exact.
  def __scaled(high, low)
    carried = low.__times_high(self)
    half = (high.__times_low(self) >> 1) & 0x7fff_ffff_ffff_ffff
    whole = high.__times_high(self)
    room = 0x7fff_ffff_ffff_ffff - carried
    # the sum of both, in 63 bits
    if half > room
      whole += 1
      half -= room + 1
    else
      half += carried
    end
    half == 0 ? whole : whole | 1
  end
end

class Float
  # Whether Ruby takes a number for a half, which it rounds to an even digit, when it writes so many places of it. It
  # reckons with Floats where there are few digits, and allows for their errors (`ruby_dtoa`, its quick way of mode 3).
  def __near_half?(places)
    bits = __bits
    power = (bits >> 52) & 0x7ff
    return false if power == 0

    part = ((bits & 0xf_ffff_ffff_ffff) | (1023 << 52)).__as_bits
    guess = (part - 1.5) * 0.289529654602168 + 0.1760912590558 + (power - 1023).to_f * 0.301029995663981
    k = guess.to_i
    k -= 1 if guess < 0.0 && guess != k.to_f
    sure = k >= 0 && k <= 22
    k -= 1 if sure && self < 10.0**k
    count = places + k + 1
    return false if count < 1 || count > 14

    d = self
    slack = 2.0
    if k > 0
      d /= 10.0**k
    elsif k < 0
      d *= 10.0**(-k & 15)
      factor = 1e16
      j = -k >> 4
      while j > 0
        if j & 1 == 1
          d *= factor
          slack += 1.0
        end
        factor *= factor
        j >>= 1
      end
    end
    if !sure && d < 1.0
      count -= 1
      return false if count < 1

      d *= 10.0
      slack += 1.0
    end
    error = (slack * d + 7.0) * 2.220446049250313e-16 * 10.0**(count - 1)
    while count > 0
      d -= d.to_i.to_f
      return false if d == 0.0

      count -= 1
      d *= 10.0 if count > 0
    end
    d <= 0.5 + error && d >= 0.5 - error
  end
end

class String
  # Writes the last characters of a number, up to a byte; its first one may be a sign.
  def __figures(number, stop, radix)
    i = stop - 1
    m = number
    if m < 0
      digit = -m.remainder(radix)
      m = -((m + digit) / radix)
      __set(i, digit < 10 ? 48 + digit : 87 + digit)
      i -= 1
      __set(i, 45) if m == 0
      return nil if m == 0
    end
    while m >= radix
      rest = m / radix
      digit = m - rest * radix
      m = rest
      __set(i, digit < 10 ? 48 + digit : 87 + digit)
      i -= 1
    end
    __set(i, m < 10 ? 48 + m : 87 + m)
    __set(i - 1, 45) if number < 0
    nil
  end

  # Eight bytes as a number that is not negative.
  def __eight(i)
    low = __byte(i) | (__byte(i + 1) << 8) | (__byte(i + 2) << 16) | (__byte(i + 3) << 24)
    high = __byte(i + 4) | (__byte(i + 5) << 8) | (__byte(i + 6) << 16) | ((__byte(i + 7) & 0x7f) << 24)
    low | (high << 32)
  end

  # Writes the shortest decimal number that reads as a Float which is finite, as Ruby does. Gives its length. Digits
  # are found by Schubfach, with crate::prelude::powers as the table: v is the Float, and u and w the middles between it
  # and its neighbours, all times four and in units of 10**k.
  def __fill_float(x, powers)
    bits = x.__bits
    at = bits < 0 ? 1 : 0
    __set(0, 45) if at == 1
    n = bits & 0xf_ffff_ffff_ffff
    power = (bits >> 52) & 0x7ff
    k = 0
    if power == 0 && n == 0
      __fill_byte(at, at + 3, 48)
      __set(at + 1, 46)
      return at + 3
    end

    whole = x.abs
    if whole < 1e15 && whole >= 1.0 && whole == whole.floor.to_f
      n = whole.to_i
    else
      regular = n != 0 || power <= 1
      if power == 0
        power = -1074
      else
        n |= 1 << 52
        power -= 1075
      end
      open = n & 1
      k = regular ? power * 661_971_961_083 >> 41 : (power * 661_971_961_083 - 274_743_187_321) >> 41
      shift = power + (-k * 913_124_641_741 >> 38) + 2
      entry = (k + 324) * 16
      high = powers.__eight(entry)
      low = powers.__eight(entry + 8)
      u = ((regular ? n * 4 - 2 : n * 4 - 1) << shift).__scaled(high, low) + open
      v = (n * 4 << shift).__scaled(high, low)
      w = (n * 4 + 2 << shift).__scaled(high, low) - open
      n = v >> 2
      tens = n / 10
      below = u <= tens * 40
      above = tens * 40 + 40 <= w
      if n >= 10 && below != above
        n = below ? tens : tens + 1
        k += 1
      else
        below = u <= n * 4
        above = n * 4 + 4 <= w
        up = below == above ? v > n * 4 + 2 || (v == n * 4 + 2 && n & 1 == 1) : above
        n += 1 if up
      end
    end
    while n % 10 == 0
      n /= 10
      k += 1
    end
    count = n.__places(10)
    __fill_decimal(n, count, count + k, at)
  end

  # Writes digits, and a point so many digits after their beginning, in Ruby's form of a Float. Gives the length.
  def __fill_decimal(n, count, point, at)
    if point > 0 && (point <= 15 || count > point)
      if count <= point
        __figures(n, at + count, 10)
        __fill_byte(at + count, at + point + 2, 48)
        __set(at + point, 46)
        return at + point + 2
      end
      __figures(n, at + count + 1, 10)
      __point_in(at, point)
      return at + count + 1
    end
    if point <= 0 && point > -4
      __fill_byte(at, at + 2 - point, 48)
      __set(at + 1, 46)
      stop = at + 2 - point + count
      __figures(n, stop, 10)
      return stop
    end

    stop = at + 2
    if count == 1
      __figures(n, at + 1, 10)
      __set(at + 2, 48)
      __set(at + 1, 46)
      stop += 1
    else
      __figures(n, at + count + 1, 10)
      __point_in(at, 1)
      stop = at + count + 1
    end
    __set(stop, 101)
    e = point - 1
    __set(stop + 1, e < 0 ? 45 : 43)
    e = -e if e < 0
    __set(stop + 2, 48)
    stop += e < 10 ? 4 : 2 + e.__places(10)
    __figures(e, stop, 10)
    stop
  end

  # Moves bytes one to the front, and writes a point behind them.
  def __point_in(at, count)
    j = at
    while j < at + count
      __set(j, __byte(j + 1))
      j += 1
    end
    __set(j, 46)
    nil
  end

  # An Integer in a field of `all` bytes, of which its digits and its sign take n.
  def __fill_int(number, n, radix, flags, all)
    stop = flags & 1 != 0 ? n : all
    __fill_field(n, flags, all)
    __figures(number, stop, radix)
    if flags & 16 != 0
      j = stop - n
      while j < stop
        b = __byte(j)
        __set(j, b - 32) if b >= 97
        j += 1
      end
    end
    __fill_sign(number, stop - n, flags)
    nil
  end

  # The same with zeros behind a point.
  def __fill_exact(number, n, places, flags, all)
    stop = flags & 1 != 0 ? n : all
    __fill_field(n, flags, all)
    point = places > 0 ? stop - places - 1 : stop
    __figures(number, point, 10)
    if places > 0
      __set(point, 46)
      __fill_byte(point + 1, stop, 48)
    end
    __fill_sign(number, stop - n, flags)
    nil
  end

  # What stands around a number.
  def __fill_field(n, flags, all)
    __fill_byte(0, all, 32)
    __fill_byte(0, all - n, 48) if flags & 3 == 2
    nil
  end

  # The sign of a number whose sign or first digit stands at a byte.
  def __fill_sign(number, at, flags)
    if number < 0
      if flags & 3 == 2
        __set(at, 48)
        __set(0, 45)
      end
    elsif flags & 12 != 0
      __set(at, 48) if flags & 3 == 2
      __set(flags & 3 == 2 ? 0 : at, flags & 4 != 0 ? 43 : 32)
    end
    nil
  end

  # `NaN` or `Inf`, with a sign, in a field.
  def __fill_word(nan, sign, n, flags, all)
    __fill_byte(0, all, 32)
    at = flags & 1 != 0 ? 0 : all - n
    if n > 3
      __set(at, sign)
      at += 1
    end
    __set(at, nan ? 78 : 73)
    __set(at + 1, nan ? 97 : 110)
    __set(at + 2, nan ? 78 : 102)
    nil
  end

  # Writes a Float with so many places behind the point, rounded to the nearest such number, and to the even one of
  # two. It is not negative and below 9e18, and too large for more than 59 bits behind the point, or else it is rounded
  # to 0. `count` bytes are for digits before the point, of which the first may stay 0.
  def __fill_fixed(x, count, places)
    bits = x.__bits
    power = ((bits >> 52) & 0x7ff) - 1075
    m = (bits & 0xf_ffff_ffff_ffff) | (1 << 52)
    __fill_byte(0, count, 48)
    __set(count, 46) if places > 0
    if power < -59
      __fill_byte(count + 1, count + 1 + places, 48)
      return nil
    end
    if power >= 0
      __figures(m << power, count, 10)
      __fill_byte(count + 1, count + 1 + places, 48)
      return nil
    end

    low = (1 << -power) - 1
    rest = m & low
    __figures(m >> -power, count, 10)
    k = 0
    while k < places
      rest *= 10
      __set(count + 1 + k, 48 + (rest >> -power))
      rest &= low
      k += 1
    end
    half = 1 << (-power - 1)
    last = places > 0 ? count + places : count - 1
    tie = rest == half || x.__near_half?(places)
    __round_up(last) if tie ? __byte(last).odd? : rest > half
    nil
  end

  # Adds 1 to the last digit up to a byte.
  def __round_up(last)
    j = last
    while j >= 0
      b = __byte(j)
      if b != 46
        __set(j, b == 57 ? 48 : b + 1)
        return nil if b != 57
      end
      j -= 1
    end
    nil
  end

  def __fill_byte(from, to, byte)
    j = from
    while j < to
      __set(j, byte)
      j += 1
    end
    nil
  end

  # Whether it is a set of characters as `tr` takes it: its ranges ascend.
  def __set?
    __set_walk(__set_start, -1, -1) != -2
  end

  # Where the characters of a set begin: behind a `^`, which means all others.
  def __set_start
    bytesize > 1 && __byte(0) == 94 ? 1 : 0
  end

  # What is asked of a set of characters, which begins at a byte. By `place`:
  #
  # - from 0 on: the character at that place of the set, or its last one
  # - -1: the last place of the character `code`, or -1
  # - -2, -3, -4, -5: which of the characters from 0, 32, 64 or 96 on it has, as 32 bits
  #
  # It gives -2 where a range does not ascend.
  def __set_walk(from, code, place)
    found = -1
    bits = 0
    high = -1
    k = 0
    i = from
    while i < bytesize
      i += 1 if __byte(i) == 92 && i + 1 < bytesize
      low = __byte(i)
      size = low < 128 ? 1 : __width(i)
      low = __char_at(i, size) if size > 1
      i += size
      high = low
      if i + 1 < bytesize && __byte(i) == 45
        high = __byte(i + 1)
        size = high < 128 ? 1 : __width(i + 1)
        high = __char_at(i + 1, size) if size > 1
        i += 1 + size
        # Ruby 3.1 counts the character of x-x twice in `tr`
        return -2 if high <= low
      end
      found = k + code - low if code >= low && code <= high
      n = high - low + 1
      if place < -1
        first = -64 - 32 * place
        last = high > first + 31 ? first + 31 : high
        first = low if low > first
        bits |= (1 << last - first + 1) - 1 << (first & 31) if first <= last
      end
      return low + place - k if place >= k && place < k + n

      k += n
    end
    return bits if place < -1

    place < 0 ? found : high
  end

  # The characters of ASCII that are in both of two sets, 32 of them as bits: `place` as in `__set_walk`.
  def __set_bits(from, other, start, place)
    mine = __set_walk(from, 0, place)
    mine ^= 0xffff_ffff if from == 1
    theirs = other.__set_walk(start, 0, place)
    theirs ^= 0xffff_ffff if start == 1
    mine & theirs
  end

  # Whether the character at a byte is in both of two sets, which begin at bytes: behind a `^` are those that it leaves
  # out.
  def __in_sets?(i, set, from, other, start)
    width = __width(i)
    code = __char_at(i, width)
    return false unless (set.__set_walk(from, code, -1) >= 0) != (from == 1)

    (other.__set_walk(start, code, -1) >= 0) != (start == 1)
  end

  def __count_of(set, from, other, start)
    a = set.__set_bits(from, other, start, -2)
    b = set.__set_bits(from, other, start, -3)
    c = set.__set_bits(from, other, start, -4)
    d = set.__set_bits(from, other, start, -5)
    n = 0
    i = 0
    while i < bytesize
      byte = __byte(i)
      if byte < 128
        bits = byte < 64 ? (byte < 32 ? a : b) : (byte < 96 ? c : d)
        n += bits >> (byte & 31) & 1
        i += 1
      else
        n += 1 if __in_sets?(i, set, from, other, start)
        i += __width(i)
      end
    end
    n
  end

  # Writes a text without the characters that are in two sets; returns how many bytes these are.
  def __fill_deleted(text, set, from, other, start)
    a = set.__set_bits(from, other, start, -2)
    b = set.__set_bits(from, other, start, -3)
    c = set.__set_bits(from, other, start, -4)
    d = set.__set_bits(from, other, start, -5)
    i = 0
    to = 0
    while i < text.bytesize
      byte = text.__byte(i)
      if byte < 128
        bits = byte < 64 ? (byte < 32 ? a : b) : (byte < 96 ? c : d)
        __set(to, byte)
        to += 1 - (bits >> (byte & 31) & 1)
        i += 1
        next
      end
      n = i + text.__width(i)
      gone = text.__in_sets?(i, set, from, other, start)
      while i < n
        unless gone
          __set(to, text.__byte(i))
          to += 1
        end
        i += 1
      end
    end
    to
  end

  # Writes a text in which a character of two sets stands once where it stood several times in a row.
  def __fill_squeezed(text, set, from, other, start)
    i = 0
    to = 0
    before = 0
    while i < text.bytesize
      width = text.__width(i)
      gone = before == width && text.__same_bytes?(i - width, i, width) && text.__in_sets?(i, set, from, other, start)
      n = i + width
      while i < n
        unless gone
          __set(to, text.__byte(i))
          to += 1
        end
        i += 1
      end
      before = width
    end
    to
  end

  def __same_bytes?(i, j, n)
    k = 0
    while k < n
      return false unless __byte(i + k) == __byte(j + k)

      k += 1
    end
    true
  end

  # Writes a text with the characters of a set replaced by those of another; returns how many bytes these are. -1: one
  # is a surrogate.
  def __fill_translated(text, set, from, by)
    a = set.__set_bits(from, "^", 1, -2)
    b = set.__set_bits(from, "^", 1, -3)
    c = set.__set_bits(from, "^", 1, -4)
    d = set.__set_bits(from, "^", 1, -5)
    i = 0
    to = 0
    while i < text.bytesize
      byte = text.__byte(i)
      bits = byte < 64 ? (byte < 32 ? a : b) : (byte < 96 ? c : d)
      if byte < 128 && bits >> (byte & 31) & 1 == 0
        __set(to, byte)
        to += 1
        i += 1
        next
      end
      width = byte < 128 ? 1 : text.__width(i)
      place = set.__set_walk(from, byte < 128 ? byte : text.__char_at(i, width), -1)
      if from == 1
        place = place < 0 ? 0x110000 : -1
      end
      if place < 0
        n = i + width
        while i < n
          __set(to, text.__byte(i))
          to += 1
          i += 1
        end
      else
        code = by.__set_walk(0, -1, place)
        return -1 if code < 0 || code > 0xd7ff && code < 0xe000

        to = __put_char(to, code)
        i += width
      end
    end
    to
  end

  # Writes a character in UTF-8 from a byte on; returns where it ends.
  def __put_char(at, code)
    if code < 0x80
      __set(at, code)
      return at + 1
    end
    if code < 0x800
      __set(at, 0xc0 | code >> 6)
      __set(at + 1, 0x80 | code & 0x3f)
      return at + 2
    end
    if code < 0x10000
      __set(at, 0xe0 | code >> 12)
      __set(at + 1, 0x80 | code >> 6 & 0x3f)
      __set(at + 2, 0x80 | code & 0x3f)
      return at + 3
    end
    __set(at, 0xf0 | code >> 18)
    __set(at + 1, 0x80 | code >> 12 & 0x3f)
    __set(at + 2, 0x80 | code >> 6 & 0x3f)
    __set(at + 3, 0x80 | code & 0x3f)
    at + 4
  end

  # Writes a String's first bytes again and again.
  def __fill_again(from, to, other, period)
    i = from
    j = 0
    while i < to
      __set(i, other.__byte(j))
      j += 1
      j = 0 if j == period
      i += 1
    end
    nil
  end

  def __fill_cased(other, small, great)
    i = 0
    while i < other.bytesize
      b = other.__byte(i)
      if b >= 97 && b <= 122
        b ^= small
      elsif b >= 65 && b <= 90
        b ^= great
      end
      __set(i, b)
      i += 1
    end
    nil
  end

  # Makes the first letter, which is small, great.
  def __begin_upper
    return nil if bytesize == 0

    b = __byte(0)
    __set(0, b - 32) if b >= 97 && b <= 122
    nil
  end

  # The number of a character that has so many bytes from a byte on.
  def __char_at(i, width)
    a = __byte(i)
    return a if width == 1
    return (a & 0x1f) << 6 | __byte(i + 1) & 0x3f if width == 2
    return (a & 0x0f) << 12 | (__byte(i + 1) & 0x3f) << 6 | __byte(i + 2) & 0x3f if width == 3

    (a & 0x07) << 18 | (__byte(i + 1) & 0x3f) << 12 | (__byte(i + 2) & 0x3f) << 6 | __byte(i + 3) & 0x3f
  end

  # Of a table of cases: where it has what a character becomes; 0: the character stays.
  def __change_of(code)
    block = code >> 6
    return 0 if block >= __byte(0) | __byte(1) << 8

    at = 9 + block * 2
    row = __byte(at) | __byte(at + 1) << 8
    at = (__byte(2) | __byte(3) << 8 | __byte(4) << 16) + (row * 64 + (code & 63)) * 2
    number = __byte(at) | __byte(at + 1) << 8
    number == 0 ? 0 : (__byte(5) | __byte(6) << 8 | __byte(7) << 16) + number * __byte(8)
  end

  # How many bytes it has once case was changed.
  def __changed_size(first, table)
    n = 0
    i = 0
    while i < bytesize
      width = __width(i)
      asked = i == 0 ? first : table
      at = asked.__change_of(__char_at(i, width))
      n += at == 0 ? width : asked.__byte(at)
      i += width
    end
    n
  end

  def __fill_changed(other, first, table)
    n = 0
    i = 0
    while i < other.bytesize
      width = other.__width(i)
      asked = i == 0 ? first : table
      at = asked.__change_of(other.__char_at(i, width))
      source = at == 0 ? other : asked
      from = at == 0 ? i : at + 1
      size = at == 0 ? width : asked.__byte(at)
      j = 0
      while j < size
        __set(n + j, source.__byte(from + j))
        j += 1
      end
      n += size
      i += width
    end
    nil
  end

  # `<=>` of the bytes, with small letters for great ones.
  def __order_of_cases(other)
    i = 0
    while i < bytesize && i < other.bytesize
      a = __byte(i)
      b = other.__byte(i)
      a |= 32 if a >= 65 && a <= 90
      b |= 32 if b >= 65 && b <= 90
      return a < b ? -1 : 1 unless a == b

      i += 1
    end
    bytesize <=> other.bytesize
  end

  def __fill_reverse(other)
    i = 0
    n = other.bytesize
    while i < n
      width = other.__width(i)
      to = n - i - width
      j = 0
      while j < width
        __set(to + j, other.__byte(i + j))
        j += 1
      end
      i += width
    end
    nil
  end

  # The first byte that `strip` leaves.
  def __first_text
    i = 0
    i += 1 while i < bytesize && __blank_or_null?(i)
    i
  end

  # The end of what `strip` leaves.
  def __last_text
    n = bytesize
    n -= 1 while n > 0 && __blank_or_null?(n - 1)
    n
  end

  def __blank_or_null?(i)
    b = __byte(i)
    b == 32 || (b >= 9 && b <= 13) || b == 0
  end

  def __blank?(i)
    b = __byte(i)
    b == 32 || (b >= 9 && b <= 13)
  end

  # The end of the first bytes without one line end.
  def __line_end(n)
    return n if n == 0

    b = __byte(n - 1)
    return n - 1 if b == 13
    return n unless b == 10

    n > 1 && __byte(n - 2) == 13 ? n - 2 : n - 1
  end

  # The end of the text without line ends.
  def __lines_end
    n = bytesize
    while n > 0 && __byte(n - 1) == 10
      n -= 1
      n -= 1 if n > 0 && __byte(n - 1) == 13
    end
    n
  end

  # The byte after the line end from a byte on.
  def __line_after(i)
    while i < bytesize
      return i + 1 if __byte(i) == 10

      i += 1
    end
    i
  end

  # The end of a line without its newline.
  def __newline(i, n)
    return n unless __byte(n - 1) == 10

    n - 1 > i && __byte(n - 2) == 13 ? n - 2 : n - 1
  end

  # How many bytes so many characters of it take, again and again.
  def __padding(count)
    n = size
    rounds = count / n
    rounds * bytesize + __offset(count - rounds * n)
  end

  def __has?(byte)
    i = 0
    while i < bytesize
      return true if __byte(i) == byte

      i += 1
    end
    false
  end

  # How often another is found, one behind the other, up to `most` times if that is not -1.
  def __matches(other, most)
    count = 0
    i = 0
    while count != most
      i = __find(other, i)
      return count if i < 0

      count += 1
      return count if i >= bytesize

      i += other.bytesize == 0 ? __width(i) : other.bytesize
    end
    count
  end

  # Writes a text with its first `count` matches replaced.
  def __fill_substituted(text, other, by, count)
    i = 0
    to = 0
    done = 0
    while done < count
      found = text.__find(other, i)
      while i < found
        __set(to, text.__byte(i))
        i += 1
        to += 1
      end
      __fill(to, by)
      to += by.bytesize
      done += 1
      i += other.bytesize
      next unless other.bytesize == 0 && i < text.bytesize

      # the character between two empty matches
      width = done < count ? text.__width(i) : 0
      while width > 0
        __set(to, text.__byte(i))
        i += 1
        to += 1
        width -= 1
      end
    end
    while i < text.bytesize
      __set(to, text.__byte(i))
      i += 1
      to += 1
    end
    nil
  end

  # Writes another String's bytes from a byte on.
  def __fill(at, other)
    i = 0
    n = other.bytesize
    while i < n
      __set(at + i, other.__byte(i))
      i += 1
    end
    nil
  end

  # The encoding and whether all is ASCII, in one number. As in the words of Strings, 0: UTF-8, 1: UTF-8 in ASCII, 2:
  # binary, 3: US-ASCII; and 4: binary in ASCII, 5: US-ASCII in ASCII.
  def __state
    code = __code
    return code if code == 1
    return code unless ascii_only?

    code == 0 ? 1 : code + 2
  end

  # The state of a String with another one behind it; -1 where Ruby does not append it. An encoding that matters wins.
  def __appended(mine, other)
    return mine if mine < 0 || mine == other

    ascii = mine == 1 || mine > 3
    their_ascii = other == 1 || other > 3
    encoding = mine < 2 ? 0 : 2 + (mine & 1)
    their_encoding = other < 2 ? 0 : 2 + (other & 1)
    if encoding == their_encoding
      ascii ? other : mine
    elsif their_ascii
      mine
    else
      ascii ? other : -1
    end
  end

  # As `__appended`, for interpolation: US-ASCII gives way to any other encoding.
  def __joined(mine, other)
    ours = mine == 5 || mine == 3
    theirs = other == 5 || other == 3
    return __appended(mine, other) if mine < 0 || !ours || theirs
    return other if mine == 5
    return -1 unless other == 1 || other == 4

    other == 1 ? 0 : 2
  end

  # How many bytes the character at a byte has; a byte that is part of none is one by itself.
  def __width(i)
    return 1 if __single?

    a = __byte(i)
    return 1 if a < 0xc2 || a > 0xf4

    left = bytesize - i
    return 1 if left < 2

    b = __byte(i + 1)
    return 1 if b < 0x80 || b > 0xbf
    return 2 if a < 0xe0
    return 1 if left < 3 || __byte(i + 2) < 0x80 || __byte(i + 2) > 0xbf

    if a < 0xf0
      return 1 if a == 0xe0 && b < 0xa0
      return 1 if a == 0xed && b > 0x9f

      return 3
    end
    return 1 if left < 4 || __byte(i + 3) < 0x80 || __byte(i + 3) > 0xbf
    return 1 if a == 0xf0 && b < 0x90
    return 1 if a == 0xf4 && b > 0x8f

    4
  end

  def size
    return bytesize if __single?

    n = 0
    i = 0
    while i < bytesize
      i += __width(i)
      n += 1
    end
    n
  end

  def length
    size
  end

  # The byte where a character begins, the end for one after the last, -1 beyond it.
  def __offset(n)
    return n > bytesize ? -1 : n if __single?

    i = 0
    while n > 0
      return -1 if i >= bytesize

      i += __width(i)
      n -= 1
    end
    i
  end

  # How many characters there are before a byte.
  def __count(stop)
    return stop if __single?

    n = 0
    i = 0
    while i < stop
      i += __width(i)
      n += 1
    end
    n
  end

  def ascii_only?
    i = 0
    while i < bytesize
      return false if __byte(i) > 127

      i += 1
    end
    true
  end

  def valid_encoding?
    return true if __encoding == 2
    return ascii_only? if __encoding == 3
    return true if __single?

    i = 0
    while i < bytesize
      width = __width(i)
      return false if width == 1 && __byte(i) > 127

      i += width
    end
    true
  end

  # Whether Ruby can look for one within the other.
  def __agrees?(other)
    __encoding == other.__encoding || bytesize == 0 || other.bytesize == 0 || ascii_only? || other.ascii_only?
  end

  # Whether the bytes of another are here from a byte on, where there is room for them.
  def __at?(i, other)
    j = 0
    while j < other.bytesize
      return false unless __byte(i + j) == other.__byte(j)

      j += 1
    end
    true
  end

  def ==(other)
    __no_text(other) unless other.is_a?(String)
    return false unless other.is_a?(String)
    return false unless bytesize == other.bytesize

    high = false
    i = 0
    while i < bytesize
      b = __byte(i)
      return false unless b == other.__byte(i)

      high = true if b > 127
      i += 1
    end
    !high || __encoding == other.__encoding
  end

  def <=>(other)
    unless other.is_a?(String)
      __no_text(other)
      __no_order(other)
    end
    return nil unless other.is_a?(String)

    high = false
    i = 0
    while i < bytesize && i < other.bytesize
      a = __byte(i)
      b = other.__byte(i)
      return -1 if a < b
      return 1 if a > b

      high = true if b > 127
      i += 1
    end
    return -1 if bytesize < other.bytesize
    return 1 if bytesize > other.bytesize
    return 0 if !high || __encoding == other.__encoding

    # as Ruby numbers encodings: binary, UTF-8, US-ASCII
    mine = __encoding == 2 ? -1 : __encoding
    theirs = other.__encoding == 2 ? -1 : other.__encoding
    mine > theirs ? 1 : -1
  end

  # The byte where another is found first from a byte on, or -1.
  def __find(other, i)
    last = bytesize - other.bytesize
    while i <= last
      return i if __at?(i, other)

      i += __width(i)
    end
    -1
  end

  # The character at which another is found last, up to one; -1: nowhere.
  def __find_last(other, most)
    found = -1
    last = bytesize - other.bytesize
    i = 0
    n = 0
    while i <= last && n <= most
      found = n if __at?(i, other)
      return found if i == bytesize

      i += __width(i)
      n += 1
    end
    found
  end

  # The number of a byte in a table of a regular expression, as crate::regexp::automaton says.
  def __symbol(table, i, last)
    return last if i < 0 || i >= bytesize

    b = __byte(i)
    return last - 1 if b == 10 && i + 1 == bytesize && table.__byte(257) == 1

    b < 128 ? table.__byte(b) : __symbol_beyond(table, __begin_of(i))
  end

  # The first byte of the character to which a byte belongs.
  def __begin_of(i)
    j = i
    j -= 1 while j > 0 && __byte(j) & 0xc0 == 0x80
    j
  end

  # A table's symbol of the character beyond ASCII that begins at a byte.
  def __symbol_beyond(table, i)
    return table.__byte(128) if table.__byte(259) == 0

    code = __char_at(i, __width(i))
    at = table.bytesize - 4
    at = table.__byte(at) | table.__byte(at + 1) << 8 | table.__byte(at + 2) << 16
    blocks = table.__byte(at) | table.__byte(at + 1) << 8
    at += 2
    block = code >> 7
    return table.__byte(128) if block >= blocks

    row = table.__byte(at + block * 2) | table.__byte(at + block * 2 + 1) << 8
    table.__byte(at + blocks * 2 + row * 128 + (code & 127))
  end

  # The end of the match that a table finds first from a byte on, or -1. `any`: some end of it.
  def __match_end(table, from, any)
    width = table.__byte(256)
    wide = table.__byte(258) == 2
    lasts = table.__byte(257) == 1
    n = bytesize
    found = -1
    i = from
    at = width + __symbol(table, i - 1, width - 1)
    row = (wide ? table.__byte(260 + at * 2) | table.__byte(261 + at * 2) << 8 : table.__byte(260 + at)) >> 1
    while i < n
      b = __byte(i)
      at = row * width
      size = 1
      if b < 128
        at += lasts && b == 10 && i + 1 == n ? width - 2 : table.__byte(b)
      else
        at += __symbol_beyond(table, i)
        size = __width(i)
      end
      entry = wide ? table.__byte(260 + at * 2) | table.__byte(261 + at * 2) << 8 : table.__byte(260 + at)
      if entry & 1 == 1
        return i if any

        found = i
      end
      row = entry >> 1
      return found if row == 0

      i += size
    end
    at = row * width + width - 1
    entry = wide ? table.__byte(260 + at * 2) : table.__byte(260 + at)
    entry & 1 == 1 ? n : found
  end

  # The beginning of the match that ends at a byte, from another byte on.
  def __match_start(table, from, to)
    width = table.__byte(256)
    wide = table.__byte(258) == 2
    found = to
    i = to
    at = width + __symbol(table, i, width - 1)
    row = (wide ? table.__byte(260 + at * 2) | table.__byte(261 + at * 2) << 8 : table.__byte(260 + at)) >> 1
    while row != 0
      at = row * width + __symbol(table, i - 1, width - 1)
      entry = wide ? table.__byte(260 + at * 2) | table.__byte(261 + at * 2) << 8 : table.__byte(260 + at)
      found = i if entry & 1 == 1
      return found if i == from

      row = entry >> 1
      i = __begin_of(i - 1)
    end
    found
  end

  # Where a match passes a position of its groups, by the bit of the position: for the last time, or -1.
  def __match_slot(table, from, to, bit)
    width = table.__byte(256)
    found = -1
    i = from
    at = 260 + 10 * (width + __symbol(table, i - 1, width - 1))
    row = table.__byte(at) | table.__byte(at + 1) << 8
    while i < to
      at = 260 + 10 * (row * width + __symbol(table, i, width - 1))
      found = i if table.__byte(at + 2 + (bit >> 3)) >> (bit & 7) & 1 == 1
      row = table.__byte(at) | table.__byte(at + 1) << 8
      i += __width(i)
    end
    at = 260 + 10 * (row * width + __symbol(table, i, width - 1))
    table.__byte(at + 6 + (bit >> 3)) >> (bit & 7) & 1 == 1 ? to : found
  end

  # Writes a replacement for a match from a byte on, with the parts of the match to which it refers. Gives its size; -1
  # for a reference that kernels do not know. Below 0, `at` says that nothing is written.
  def __fill_reference(at, by, source, from, to, table, groups)
    n = 0
    i = 0
    while i < by.bytesize
      b = by.__byte(i)
      c = b == 92 && i + 1 < by.bytesize ? by.__byte(i + 1) : -1
      start = 0
      stop = 0
      i += c < 0 ? 1 : 2
      if c == 48 || c == 38
        start = from
        stop = to
      elsif c >= 49 && c <= 57
        k = c - 48
        if k <= groups
          return -1 if table.bytesize == 0

          start = source.__match_slot(table, from, to, 2 * k)
          stop = start < 0 ? start : source.__match_slot(table, from, to, 2 * k + 1)
        end
      elsif c == 96
        stop = from
      elsif c == 39
        start = to
        stop = source.bytesize
      elsif c == 107 && i < by.bytesize && by.__byte(i) == 60
        return -1
      else
        __set(at + n, b) if at >= 0
        n += 1
        if c >= 0 && c != 92
          __set(at + n, c) if at >= 0
          n += 1
        end
      end
      __fill_part(at + n, source, start, stop) if at >= 0 && stop > start
      n += stop - start
    end
    n
  end

  # Writes a part of another String from a byte on.
  def __fill_part(at, other, from, stop)
    i = from
    j = at
    while i < stop
      __set(j, other.__byte(i))
      i += 1
      j += 1
    end
    nil
  end

  # The byte behind spaces and a sign.
  def __after_sign
    i = 0
    i += 1 while i < bytesize && __space?(i)
    return i unless i < bytesize

    __byte(i) == 43 || __byte(i) == 45 ? i + 1 : i
  end

  # The base that digits from a byte on have: what is asked for, or what a prefix says.
  def __radix(i, base)
    return base if base > 0

    if i + 1 < bytesize && __byte(i) == 48
      b = __byte(i + 1) | 32
      return 16 if b == 120
      return 2 if b == 98
      return 10 if b == 100

      return 8
    end
    base < -1 ? -base : 10
  end

  # Whether a prefix is there that fits the base.
  def __prefix?(i, radix)
    return false unless i + 1 < bytesize && __byte(i) == 48

    b = __byte(i + 1) | 32
    (b == 120 && radix == 16) || (b == 98 && radix == 2) || (b == 111 && radix == 8) || (b == 100 && radix == 10)
  end

  # What a byte counts as a digit of the greatest base, or more.
  def __digit(b)
    return b - 48 if b >= 48 && b <= 57

    b |= 32
    b >= 97 && b <= 122 ? b - 87 : 99
  end

  def __figure?(i)
    i < bytesize && __byte(i) >= 48 && __byte(i) <= 57
  end

  # Whether a character may begin at a byte.
  def __head?(i)
    return true if __single? || i <= 0 || i >= bytesize

    b = __byte(i)
    b < 0x80 || b > 0xbf
  end

  def __space?(i)
    b = __byte(i)
    b == 32 || (b >= 9 && b <= 13)
  end
end
