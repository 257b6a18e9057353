# frozen_string_literal: true

# Hashes are looked up and walked through. What yields a key and a value wants a block that takes both.
class Hash
  def [](key)
    i = __slot(key)
    return __default if __doubt(i < 0)

    __values.__at(i)
  end

  def fetch(key, default = (none = true))
    i = __slot(key)
    if i >= 0
      __values.__at(i)
    elsif block_given?
      yield(key)
    elsif none
      __key_error(key)
    else
      default
    end
  end

  def dig(key, other = (one = true))
    i = __slot(key)
    return __default if __doubt(i < 0)
    return __values.__at(i) if one

    value = __values.__at(i)
    value.nil? ? nil : value[other]
  end

  def each
    i = 0
    while i < __keys.__size
      yield(__keys.__at(i), __values.__at(i))
      i += 1
    end
    self
  end

  def each_pair
    i = 0
    while i < __keys.__size
      yield(__keys.__at(i), __values.__at(i))
      i += 1
    end
    self
  end

  def each_key
    i = 0
    while i < __keys.__size
      yield(__keys.__at(i))
      i += 1
    end
    self
  end

  def each_value
    i = 0
    while i < __keys.__size
      yield(__values.__at(i))
      i += 1
    end
    self
  end

  def any?
    return __keys.__size > 0 unless block_given?

    i = 0
    while i < __keys.__size
      return true if yield(__keys.__at(i), __values.__at(i))

      i += 1
    end
    false
  end

  def all?
    i = 0
    while i < __keys.__size
      return false unless yield(__keys.__at(i), __values.__at(i))

      i += 1
    end
    true
  end

  def count
    return __keys.__size unless block_given?

    n = 0
    i = 0
    while i < __keys.__size
      n += 1 if yield(__keys.__at(i), __values.__at(i))
      i += 1
    end
    n
  end

  def value?(value)
    i = 0
    while i < __keys.__size
      return true if __values.__at(i) == value

      i += 1
    end
    false
  end

  def has_value?(value)
    i = 0
    while i < __keys.__size
      return true if __values.__at(i) == value

      i += 1
    end
    false
  end

  def key(value)
    i = 0
    while i < __keys.__size
      return __keys.__at(i) if __values.__at(i) == value

      i += 1
    end
    nil
  end
end
