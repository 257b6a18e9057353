# frozen_string_literal: true

# Strings over their bytes. Nothing in here raises: these are functions of their own, not inlined.
class String
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
