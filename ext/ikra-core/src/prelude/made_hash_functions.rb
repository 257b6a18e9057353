# frozen_string_literal: true

# Hashes that kernels make: keys, values and the keys' hashes, in insertion order. A deleted key leaves a hash below 0.
# Few keys are looked at one by one; for more there is an index, with places by hashes, -1 where it is empty.
class MadeHash
  # The place of a key with this hash, or -1.
  def __spot(key, hash)
    if __index.__size == 0
      i = 0
      while i < __used
        return i if __hashes.__at(i) == hash && __keys.__at(i).eql?(key)

        i += 1
      end
      return -1
    end
    mask = __index.__size - 1
    at = hash & mask
    while true
      i = __index.__at(at)
      return -1 if i < 0
      return i if __hashes.__at(i) == hash && __keys.__at(i).eql?(key)

      at = (at + 1) & mask
    end
  end

  # The place of a key that is not there yet. Its value is to follow.
  def __append_key(key, hash)
    __make_room if __used == __keys.__size
    i = __used
    __keys.__put(i, key)
    __hashes.__put(i, hash)
    __note(hash, i) if __index.__size > 0
    self.__used = i + 1
    self.__live = __live + 1
    i
  end

  # Enters a place in the index.
  def __note(hash, place)
    mask = __index.__size - 1
    at = hash & mask
    at = (at + 1) & mask while __index.__at(at) >= 0
    __index.__put(at, place)
    nil
  end

  # Moves what is there to larger lists, without the gaps that deleted keys left.
  def __make_room
    room = 4
    room *= 2 while room < __live + (__live >> 1) + 1
    __move_to(__keys.__alike(room), __values.__alike(room), __hashes.__alike(room), room)
  end

  def __move_to(keys, values, hashes, room)
    n = 0
    i = 0
    while i < __used
      hash = __hashes.__at(i)
      if hash >= 0
        keys.__put(n, __keys.__at(i))
        values.__put(n, __values.__at(i))
        hashes.__put(n, hash)
        n += 1
      end
      i += 1
    end
    self.__keys = keys
    self.__values = values
    self.__hashes = hashes
    self.__used = n
    self.__index = __index.__alike(room > 8 ? room * 2 : 0)
    i = 0
    while i < __index.__size
      __index.__put(i, -1)
      i += 1
    end
    i = 0
    while i < n && __index.__size > 0
      __note(hashes.__at(i), i)
      i += 1
    end
    nil
  end

  def __drop(place)
    __hashes.__put(place, -1)
    self.__live = __live - 1
    nil
  end

  def size
    __live
  end
  alias length size

  def empty?
    __live == 0
  end

  # What patterns ask.
  def __keys?(key = (none = true))
    return true if none

    __spot(key, key.__hash) >= 0
  end

  def __member(key)
    __lend
    __values.__at(__spot(key, key.__hash))
  end

  def __key_count
    __live
  end
end

class String
  # A Hash keeps a frozen String, which nobody else has.
  def __as_key
    frozen? ? self : __view(0, bytesize).__as_frozen
  end
end
