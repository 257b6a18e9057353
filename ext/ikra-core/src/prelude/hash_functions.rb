# frozen_string_literal: true

# Hashes as the host lays them out: keys, values, and places in both by the keys' hashes.
class Hash
  # The place of a key, or -1.
  def __slot(key)
    mask = __index.__size - 1
    at = key.__hash & mask
    while true
      i = __index.__at(at)
      return -1 if i < 0
      return i if __keys.__at(i).eql?(key)

      at = (at + 1) & mask
    end
  end

  def size
    __keys.__size
  end
  alias length size

  # What patterns ask.
  def __keys?(key = (none = true))
    return true if none

    __slot(key) >= 0
  end

  def __member(key)
    __values.__at(__slot(key))
  end

  def __key_count
    __keys.__size
  end

  def empty?
    __keys.__size == 0
  end

  def key?(key)
    __slot(key) >= 0
  end
  alias has_key? key?
  alias include? key?
  alias member? key?
end

class String
  # FNV-1a, as the host computes it.
  def __hash
    h = 2_166_136_261
    i = 0
    while i < bytesize
      h = ((h ^ __byte(i)) * 16_777_619) & 0xffff_ffff
      i += 1
    end
    h
  end
end

# Keys that are made of others: as the host combines their hashes.
class Array
  def __hash
    h = 2_166_136_261
    i = 0
    while i < __size
      h = ((h ^ __at(i).__hash) * 16_777_619) & 0xffff_ffff
      i += 1
    end
    h
  end
end

class Struct
  def __hash
    h = 2_166_136_261
    i = 0
    while i < __size
      h = ((h ^ __at(i).__hash) * 16_777_619) & 0xffff_ffff
      i += 1
    end
    h
  end
end
