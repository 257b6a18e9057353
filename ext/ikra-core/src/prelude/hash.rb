# frozen_string_literal: true

# Hashes are looked up and walked through. `yield(key, value)` gives a block that takes one parameter an array of both.
# Enumerable has the other methods, over such arrays. Their elements may be of the kinds of keys and of values, so some
# methods stand here, too.
class Hash
  def [](key)
    i = __slot(key)
    return __default if __doubt(i < 0)

    __values.__at(i)
  end

  def __rest_default
    __default
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

  # `fetch` of a constant key: whether the Hash has it, and its value.
  def __fetched(key, present, value, default = (none = true))
    if present
      value
    elsif block_given?
      yield(key)
    elsif none
      __key_error(key)
    else
      default
    end
  end

  def dig(key, second = (one = true), third = (two = true), fourth = (three = true), fifth = (four = true))
    i = __slot(key)
    if __doubt(i < 0)
      value = __default
    else
      value = __values.__at(i)
    end
    return value if one
    return value.__dug(second) if two
    return value.__dug(second, third) if three
    return value.__dug(second, third, fourth) if four

    value.__dug(second, third, fourth, fifth)
  end

  def values_at(*keys)
    keys.map { |key| self[key] }
  end

  def each
    i = 0
    while i < __keys.__size
      yield(__keys.__at(i), __values.__at(i))
      i += 1
    end
    self
  end
  alias each_pair each

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

  def keys
    __build(__keys.__size) { |i| __keys.__at(i) }
  end

  def values
    __build(__keys.__size) { |i| __values.__at(i) }
  end

  def to_a
    __build(__keys.__size) { |i| __pair(i) }
  end
  alias __splat to_a

  def map
    __build(__keys.__size) { |i| yield(__keys.__at(i), __values.__at(i)) }
  end
  alias collect map

  def flat_map
    map { |key, value| yield(key, value) }.__flat {}
  end
  alias collect_concat flat_map

  def filter_map
    out = []
    each do |key, value|
      x = yield(key, value)
      out << x if x
    end
    out
  end

  def find(otherwise = nil)
    each { |key, value| return [key, value] if yield(key, value) }
    otherwise.nil? ? nil : otherwise.call
  end
  alias detect find

  def find_all
    out = []
    each { |key, value| out << [key, value] if yield(key, value) }
    out
  end

  # Of an empty Hash, no part has a number: `__int` says that one would be.
  def partition
    (0...__keys.__size).partition { |i| yield(__keys.__at(i), __values.__at(i)) }.map { |part| part.map { |i| __pair(__int(i)) } }
  end

  def sort_by
    (0...__keys.__size).sort_by { |i| yield(__keys.__at(i), __values.__at(i)) }.map { |i| __pair(i) }
  end

  def min_by(count = (one = true))
    if one || count.nil?
      i = (0...__keys.__size).min_by { |i| yield(__keys.__at(i), __values.__at(i)) }
      i.nil? ? nil : __pair(i)
    else
      (0...__keys.__size).min_by(count) { |i| yield(__keys.__at(i), __values.__at(i)) }.map { |i| __pair(i) }
    end
  end

  def max_by(count = (one = true))
    if one || count.nil?
      i = (0...__keys.__size).max_by { |i| yield(__keys.__at(i), __values.__at(i)) }
      i.nil? ? nil : __pair(i)
    else
      (0...__keys.__size).max_by(count) { |i| yield(__keys.__at(i), __values.__at(i)) }.map { |i| __pair(i) }
    end
  end

  def __pair(at)
    [__keys.__at(at), __values.__at(at)]
  end

  def sum(start = 0)
    if block_given?
      map { |key, value| yield(key, value) }.sum(start)
    else
      to_a.sum(start)
    end
  end

  def any?(pattern = (none = true))
    if none
      return __keys.__size > 0 unless block_given?

      each { |key, value| return true if yield(key, value) }
    else
      each { |pair| return true if pattern.__asked === pair }
    end
    false
  end

  def all?(pattern = (none = true))
    if none
      each { |key, value| return false unless yield(key, value) } if block_given?
    else
      each { |pair| return false unless pattern.__asked === pair }
    end
    true
  end

  def none?(pattern = (none = true))
    if none
      return __keys.__size == 0 unless block_given?

      each { |key, value| return false if yield(key, value) }
    else
      each { |pair| return false if pattern.__asked === pair }
    end
    true
  end

  def count(item = (all = true))
    return __keys.__size if all && !block_given?

    n = 0
    if all
      each { |key, value| n += 1 if yield(key, value) }
    else
      each { |pair| n += 1 if pair.__asked == item }
    end
    n
  end

  def value?(value)
    each_value { |x| return true if x.__asked == value }
    false
  end
  alias has_value? value?

  def key(value)
    each { |key, x| return key if x.__asked == value }
    nil
  end

  # New Hashes, which have no default.
  def select
    out = {}
    each { |key, value| out.__add(key, value) if yield(key, value) }
    out
  end
  alias filter select

  def reject
    out = {}
    each { |key, value| out.__add(key, value) unless yield(key, value) }
    out
  end

  def compact
    out = {}
    each { |key, value| out.__add(key, value) unless value.nil? }
    out
  end

  def slice(*keys)
    out = {}
    keys.each { |key| out[key] = self.__member(key) if key?(key) }
    out
  end

  def except(*keys)
    out = {}
    each { |key, value| out.__add(key, value) unless keys.__before?(key, keys.size) }
    out
  end

  def transform_values
    out = {}
    keys.each { |key| out.__add(key, yield(__member(key))) }
    out
  end

  def transform_keys(names = (none = true))
    out = {}
    if none
      __block_form unless block_given?
      each { |key, value| out[yield(key)] = value }
    else
      __needs_hash unless names.is_a?(Hash)
      if block_given?
        each { |key, value| out[names.key?(key) ? names.__member(key) : yield(key)] = value }
      else
        each { |key, value| out[names.key?(key) ? names.__member(key) : key] = value }
      end
    end
    out
  end

  def invert
    out = {}
    each { |key, value| out[value] = key }
    out
  end

  def to_h
    return self unless block_given?

    out = {}
    each { |key, value| out.__add_pair(yield(key, value)) }
    out
  end

  def merge(other = (none = true), second = (one = true), third = (two = true))
    out = dup
    return out if none

    if block_given?
      out.update(other) { |key, mine, theirs| yield(key, mine, theirs) }
      out.update(second) { |key, mine, theirs| yield(key, mine, theirs) } unless one
      out.update(third) { |key, mine, theirs| yield(key, mine, theirs) } unless two
    else
      out.update(other)
      out.update(second) unless one
      out.update(third) unless two
    end
    out
  end

  def fetch_values(*keys)
    if block_given?
      keys.map { |key| fetch(key) { |lacking| yield(lacking) } }
    else
      keys.map { |key| fetch(key) }
    end
  end

  # Whether all keys are in another Hash, with equal values.
  def <=(other)
    __needs_hash unless other.is_a?(Hash)
    return false if size > other.size

    each do |key, value|
      return false unless other.key?(key)
      return false unless value.__asked == other.__member(key)
    end
    true
  end

  def <(other)
    __needs_hash unless other.is_a?(Hash)
    size < other.size && self <= other
  end

  def >=(other)
    __needs_hash unless other.is_a?(Hash)
    other <= self
  end

  def >(other)
    __needs_hash unless other.is_a?(Hash)
    other < self
  end

  def dup
    out = __new_hash(__default)
    each { |key, value| out.__add(key, value) }
    out
  end
end
