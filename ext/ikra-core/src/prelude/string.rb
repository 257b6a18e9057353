# frozen_string_literal: true

# Strings: what checks its arguments, raises, or takes a block.
class String
  def empty?
    bytesize == 0
  end

  def getbyte(index)
    i = __int(index)
    i += bytesize if i < 0
    return nil if __doubt(i < 0 || i >= bytesize)

    __byte(i)
  end

  def ord
    __argument_error(:"empty string") if bytesize == 0
    a = __byte(0)
    return a if a < 0x80 || __encoding == 2

    __argument_error(:"invalid byte sequence in US-ASCII") if __encoding == 3
    n = __width(0)
    __argument_error(:"invalid byte sequence in UTF-8") if n == 1
    return (a & 0x1f) << 6 | __byte(1) & 0x3f if n == 2
    return (a & 0x0f) << 12 | (__byte(1) & 0x3f) << 6 | __byte(2) & 0x3f if n == 3

    (a & 0x07) << 18 | (__byte(1) & 0x3f) << 12 | (__byte(2) & 0x3f) << 6 | __byte(3) & 0x3f
  end

  def each_byte
    i = 0
    while i < bytesize
      yield(__byte(i))
      i += 1
    end
    self
  end

  def each_char
    i = 0
    while i < bytesize
      width = __width(i)
      yield(__view(i, width))
      i += width
    end
    self
  end

  def bytes
    list = []
    each_byte { |byte| list << byte }
    list
  end

  def chars
    list = []
    each_char { |char| list << char }
    list
  end

  def __each_byte_with_index(start = 0)
    i = start - 1
    each_byte { |byte| yield(byte, i += 1) }
  end

  def __each_char_with_index(start = 0)
    i = start - 1
    each_char { |char| yield(char, i += 1) }
  end

  # What iterators without a block give one after the other.
  def __list_each_byte
    bytes
  end

  def __list_each_char
    chars
  end

  def [](at, length = (one = true))
    if at.is_a?(Range)
      n = size
      from = __from(at, n)
      to = __stop(at, n)
      return nil if __doubt(from < 0 || from > n)

      i = __offset(from)
      to <= from ? __view(i, 0) : __view(i, __offset(to) - i)
    elsif at.is_a?(String)
      include?(at) ? at.__view(0, at.bytesize) : nil
    elsif one
      n = __int(at)
      n += size if n < 0
      return nil if __doubt(n < 0)

      i = __offset(n)
      return nil if __doubt(i < 0 || i >= bytesize)

      __view(i, __width(i))
    else
      n = __int(at)
      m = __int(length)
      n += size if n < 0
      return nil if __doubt(m < 0 || n < 0)

      i = __offset(n)
      return nil if __doubt(i < 0)

      stop = m > bytesize ? -1 : __offset(n + m)
      __view(i, (stop < 0 ? bytesize : stop) - i)
    end
  end

  # Where a Range begins among `n`.
  def __from(range, n)
    from = range.begin.nil? ? 0 : __int(range.begin)
    from < 0 ? from + n : from
  end

  # Where a Range has ended among `n`.
  def __stop(range, n)
    to = range.end.nil? ? n : __int(range.end)
    to += n if to < 0
    return n if to >= n

    range.exclude_end? ? to : to + 1
  end

  def byteslice(at, length = (one = true))
    if at.is_a?(Range)
      from = __from(at, bytesize)
      to = __stop(at, bytesize)
      return nil if __doubt(from < 0 || from > bytesize)

      __view(from, to <= from ? 0 : to - from)
    elsif one
      i = __int(at)
      i += bytesize if i < 0
      return nil if __doubt(i < 0 || i >= bytesize)

      __view(i, 1)
    else
      i = __int(at)
      n = __int(length)
      i += bytesize if i < 0
      return nil if __doubt(n < 0 || i < 0 || i > bytesize)

      __view(i, n > bytesize - i ? bytesize - i : n)
    end
  end

  def include?(other)
    text = __text(other)
    __disagree unless __agrees?(text)
    text.valid_encoding? && __find(text, 0) >= 0
  end

  def index(other, from = 0)
    text = __text(other)
    n = __int(from)
    n += size if n < 0
    return nil if n < 0

    i = __offset(n)
    return nil if i < 0

    __disagree unless __agrees?(text)
    return nil unless text.valid_encoding?

    i = __find(text, i)
    i < 0 ? nil : __count(i)
  end

  def rindex(other, from = (none = true))
    text = __text(other)
    last = size
    n = none ? last : __int(from)
    n += last if n < 0
    return nil if n < 0

    __disagree unless __agrees?(text)
    __broken unless valid_encoding?
    return nil unless text.valid_encoding?

    n = __find_last(text, n)
    n < 0 ? nil : n
  end

  def start_with?(prefix)
    text = __text(prefix)
    __disagree unless __agrees?(text)
    # whether a part of a character counts differs between Rubies
    __broken unless text.valid_encoding?
    text.bytesize <= bytesize && __at?(0, text)
  end

  def end_with?(suffix)
    text = __text(suffix)
    __disagree unless __agrees?(text)
    return true if text.bytesize == 0

    i = bytesize - text.bytesize
    i >= 0 && __head?(i) && __at?(i, text)
  end

  def chr
    bytesize == 0 ? __view(0, 0) : __view(0, __width(0))
  end

  def delete_prefix(prefix)
    text = __text(prefix)
    __disagree unless __agrees?(text)
    __broken unless text.valid_encoding?
    return __view(0, bytesize) if text.bytesize > bytesize || !__at?(0, text)

    __view(text.bytesize, bytesize - text.bytesize)
  end

  def delete_suffix(suffix)
    text = __text(suffix)
    __disagree unless __agrees?(text)
    i = bytesize - text.bytesize
    __broken unless text.valid_encoding?
    return __view(0, bytesize) if i < 0 || !__head?(i) || !__at?(i, text)

    __view(0, i)
  end

  # As Ruby's own: spaces, a sign, `0d`, digits with single underscores between them, and then anything.
  def to_i
    i = 0
    i += 1 while i < bytesize && __space?(i)
    minus = false
    if i < bytesize && (__byte(i) == 43 || __byte(i) == 45)
      minus = __byte(i) == 45
      i += 1
    end
    i += 2 if i + 1 < bytesize && __byte(i) == 48 && (__byte(i + 1) | 32) == 100
    n = 0
    digit = false
    while i < bytesize
      b = __byte(i)
      if b >= 48 && b <= 57
        n = n * 10 - (b - 48)
        digit = true
      elsif b == 95 && digit
        digit = false
      else
        break
      end
      i += 1
    end
    minus ? n : -n
  end

  # Exact where the digits fit 53 bits and the power of ten is a Float: the quotient or product is then rounded once.
  def to_f
    i = 0
    i += 1 while i < bytesize && __space?(i)
    minus = false
    if i < bytesize && (__byte(i) == 43 || __byte(i) == 45)
      minus = __byte(i) == 45
      i += 1
    end
    __broken if i + 1 < bytesize && __byte(i) == 48 && (__byte(i + 1) | 32) == 120
    n = 0
    power = 0
    digits = 0
    point = false
    after = false
    while i < bytesize
      b = __byte(i)
      if b >= 48 && b <= 57
        __many_digits if digits > 15
        n = n * 10 + (b - 48)
        digits += 1 if n > 0
        power -= 1 if point
        after = true
      elsif b == 95 && after && i + 1 < bytesize && __byte(i + 1) >= 48 && __byte(i + 1) <= 57
        after = true
      elsif b == 46 && !point && i + 1 < bytesize && __byte(i + 1) >= 48 && __byte(i + 1) <= 57
        point = true
      else
        break
      end
      i += 1
    end
    if after && i < bytesize && (__byte(i) | 32) == 101
      j = i + 1
      down = false
      if j < bytesize && (__byte(j) == 43 || __byte(j) == 45)
        down = __byte(j) == 45
        j += 1
      end
      e = 0
      while j < bytesize && __byte(j) >= 48 && __byte(j) <= 57
        __many_digits if e > 1000
        e = e * 10 + (__byte(j) - 48)
        j += 1
      end
      __many_digits if j < bytesize && __byte(j) == 95
      power += down ? -e : e
    end
    __many_digits if n > 9_007_199_254_740_992 || n > 0 && (power > 22 || power < -22)
    scale = 1.0
    k = power < 0 ? -power : power
    if n > 0
      while k > 0
        scale *= 10.0
        k -= 1
      end
    end
    f = power < 0 ? n.to_f / scale : n.to_f * scale
    # a sign without a digit is no number
    minus && after ? -f : f
  end
end
