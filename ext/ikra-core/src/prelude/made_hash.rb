# frozen_string_literal: true

# Methods of Hashes that kernels make, where they differ from those of Hashes that are looked up.
class MadeHash
  def [](key)
    i = __spot(key, key.__hash)
    block = __block
    if block.nil?
      return __default if __default.nil? ? __doubt(i < 0) : i < 0
    elsif i < 0
      value = block.call(self, key)
      __lend
      return value
    end
    __lend
    __values.__at(i)
  end

  def []=(key, value)
    __lend if value.is_a?(Array)
    __store_list(key, value)
    value
  end
  alias store []=
  alias __store []=

  # A value that nothing else holds. Lists may grow in a Hash as long as nothing else may hold them: `__lend` notes that
  # something else may, beside the number of methods that go over the Hash.
  def __store_list(key, value)
    hash = key.__hash
    i = __spot(key, hash)
    if i < 0
      __fixed if __walks & 0xffff_ffff > 0
      i = __append_key(key.__as_key, hash)
    end
    __values.__put(i, value)
    nil
  end

  # Where the list is to which `h[key] << value` appends, or -1.
  def __ready_place(key)
    i = __spot(key, key.__hash)
    block = __block
    return i if i >= 0 || block.nil?

    walks = __walks
    block.call(self, key)
    self.__walks = walks if __stores_list?
    __spot(key, key.__hash)
  end

  # `h[key]`, before `<< value`
  def __ready(key)
    i = __ready_place(key)
    i < 0 ? __default : __values.__at(i)
  end

  # `h[key] ||= []`, of a Hash without a default
  def __ready_or_new(key)
    hash = key.__hash
    i = __spot(key, hash)
    if i < 0
      block = __block
      __or_form unless block.nil? && __default.nil?
      __fixed if __walks & 0xffff_ffff > 0
      i = __append_key(key.__as_key, hash)
      __values.__put(i, [])
    elsif !__values.__at(i)
      __values.__put(i, [])
    end
    __values.__at(i)
  end

  # `h[key] << value`
  def __push(key, value)
    i = __ready_place(key)
    if i < 0
      __default << value
    else
      __push_at(i, __values.__at(i), value)
    end
    nil
  end

  # The same after the evaluation of a value that may have changed the Hash.
  def __push_to(key, list, value)
    if list.is_a?(Array)
      i = __spot(key, key.__hash)
      __moved_form if i < 0 || !__values.__at(i).__same?(list)
      __push_at(i, list, value)
    else
      list << value
    end
    nil
  end

  def __push_at(place, list, value)
    if list.is_a?(Array)
      __lent_form if __lent?
      __values.__put(place, list.__grown(value))
    else
      list << value
    end
    nil
  end

  def __fixed
    raise "can't add a new key into hash during iteration"
  end

  def key?(key)
    __spot(key, key.__hash) >= 0
  end
  alias has_key? key?
  alias include? key?
  alias member? key?

  def fetch(key, default = (none = true))
    i = __spot(key, key.__hash)
    if i >= 0
      __lend
      __values.__at(i)
    elsif block_given?
      yield(key)
    elsif none
      __key_error(key)
    else
      default
    end
  end

  # Goes over the places of keys. Meanwhile no key may be added.
  def __each_place
    self.__walks = __walks + 1
    begin
      i = 0
      while i < __used
        yield(i) if __hashes.__at(i) >= 0
        i += 1
      end
    ensure
      self.__walks = __walks - 1
    end
  end

  # The places of all keys.
  def __places
    n = -1
    out = __buffer(__live)
    i = 0
    while i < __used
      out.__put(n += 1, i) if __hashes.__at(i) >= 0
      i += 1
    end
    out
  end

  def each
    __lend
    __each_place { |i| yield(__keys.__at(i), __values.__at(i)) }
    self
  end
  alias each_pair each

  def each_key
    __each_place { |i| yield(__keys.__at(i)) }
    self
  end

  def each_value
    __lend
    __each_place { |i| yield(__values.__at(i)) }
    self
  end

  def keys
    places = __places
    __build(places.size) { |i| __keys.__at(places.__at(i)) }
  end

  def values
    __lend
    places = __places
    __build(places.size) { |i| __values.__at(places.__at(i)) }
  end

  def to_a
    __lend
    places = __places
    __build(places.size) { |i| __pair(places.__at(i)) }
  end
  alias __splat to_a

  def __pair(at)
    i = __int(at)
    [__keys.__at(i), __values.__at(i)]
  end

  def map
    __lend
    out = []
    __each_place { |i| out << yield(__keys.__at(i), __values.__at(i)) }
    out
  end
  alias collect map

  # A key that is not there yet.
  def __add(key, value)
    __lend if value.is_a?(Array)
    i = __append_key(key, key.__hash)
    __values.__put(i, value)
    nil
  end

  # What a pair of a key and a value sets.
  def __add_pair(pair)
    __pair_form unless pair.is_a?(Array)
    __pair_form unless pair.size == 2
    self[pair.__at(0)] = pair.__at(1)
    nil
  end

  # Counts a key once more, and gives its place. The block gives what the Hash keeps of a new key.
  def __count(key)
    hash = key.__hash
    i = __spot(key, hash)
    if i < 0
      i = __append_key(yield, hash)
      __values.__put(i, 1)
    else
      __values.__put(i, __values.__at(i) + 1)
    end
    i
  end

  def dig(key, second = (one = true), third = (two = true), fourth = (three = true), fifth = (four = true))
    value = self[key]
    return value if one
    return value.__dug(second) if two
    return value.__dug(second, third) if three
    return value.__dug(second, third, fourth) if four

    value.__dug(second, third, fourth, fifth)
  end

  def delete(key)
    i = __spot(key, key.__hash)
    if i >= 0
      __drop(i)
      __values.__at(i)
    elsif block_given?
      yield(key)
    end
  end

  def delete_if
    __lend
    __each_place { |i| __drop(i) if yield(__keys.__at(i), __values.__at(i)) }
    self
  end

  def reject!
    count = __live
    delete_if { |key, value| yield(key, value) }
    count == __live ? nil : self
  end

  def keep_if
    __lend
    __each_place { |i| __drop(i) unless yield(__keys.__at(i), __values.__at(i)) }
    self
  end

  def select!
    count = __live
    keep_if { |key, value| yield(key, value) }
    count == __live ? nil : self
  end
  alias filter! select!

  def clear
    __each_place { |i| __drop(i) }
    self
  end

  def shift
    __shift_form if __walks & 0xffff_ffff > 0
    i = 0
    while i < __used
      if __hashes.__at(i) >= 0
        __drop(i)
        return __pair(i)
      end
      i += 1
    end
    nil
  end

  def update(other = (none = true), second = (one = true), third = (two = true))
    return self if none

    if block_given?
      __take_all(other) { |key, mine, theirs| yield(key, mine, theirs) }
      __take_all(second) { |key, mine, theirs| yield(key, mine, theirs) } unless one
      __take_all(third) { |key, mine, theirs| yield(key, mine, theirs) } unless two
    else
      __take_all(other)
      __take_all(second) unless one
      __take_all(third) unless two
    end
    self
  end
  alias merge! update

  def __take_all(other)
    __needs_hash unless other.is_a?(Hash)
    if block_given?
      other.each { |key, value| self[key] = key?(key) ? yield(key, self[key], value) : value }
    else
      other.each { |key, value| self[key] = value }
    end
    nil
  end

  # `{ **other, key => value }`: the Hash before it, with what another has, or with one key more.
  def __with_all(other)
    __take_all(other)
    self
  end

  def __with(key, value)
    __store(key, value)
    self
  end

  def transform_values!
    __lend
    __each_place { |i| __values.__put(i, yield(__values.__at(i))) }
    self
  end

  def compact!
    count = __live
    __each_place { |i| __drop(i) if __values.__at(i).nil? }
    count == __live ? nil : self
  end

  def default=(value)
    block = __block
    __default_form unless block.nil?
    self.__default = value
  end

  def dup
    block = __block
    __dup_form unless block.nil?
    out = __new_hash(__default)
    __lend
    __each_place { |i| out.__add(__keys.__at(i), __values.__at(i)) }
    out
  end

  def clone(freeze: nil)
    __freeze_form if freeze
    dup
  end

  def default
    __default
  end

  def ==(other)
    return false unless other.is_a?(Hash)
    return false unless size == other.size

    each do |key, value|
      return false unless other.key?(key)
      return false unless value.__asked == other.__member(key)
    end
    true
  end

  def partition
    __lend
    keys = __keys.__alike(__live)
    values = __values.__alike(__live)
    yes = []
    no = []
    n = 0
    __each_place do |i|
      keys.__put(n, __keys.__at(i))
      values.__put(n, __values.__at(i))
      if yield(keys.__at(n), values.__at(n))
        yes << n
      else
        no << n
      end
      n += 1
    end
    [yes, no].map { |list| list.map { |i| [keys.__at(__int(i)), values.__at(__int(i))] } }
  end

  def sort_by
    keys = __keys.__alike(__live)
    values = __values.__alike(__live)
    order = __rank(keys, values) { |key, value| yield(key, value) }
    __build(order.size) { |i| i }.__by(order).map { |i| [keys.__at(i), values.__at(i)] }
  end

  def min_by(count = (one = true))
    keys = __keys.__alike(__live)
    values = __values.__alike(__live)
    order = __rank(keys, values) { |key, value| yield(key, value) }
    if one || count.nil?
      i = (0...order.size).min_by { |n| order.__at(n) }
      i.nil? ? nil : [keys.__at(i), values.__at(i)]
    else
      (0...order.size).min_by(count) { |n| order.__at(n) }.map { |n| [keys.__at(n), values.__at(n)] }
    end
  end

  def max_by(count = (one = true))
    keys = __keys.__alike(__live)
    values = __values.__alike(__live)
    order = __rank(keys, values) { |key, value| yield(key, value) }
    if one || count.nil?
      i = (0...order.size).max_by { |n| order.__at(n) }
      i.nil? ? nil : [keys.__at(i), values.__at(i)]
    else
      (0...order.size).max_by(count) { |n| order.__at(n) }.map { |n| [keys.__at(n), values.__at(n)] }
    end
  end

  # What the block gives for each key and value. It sees them as they are then, and so does the caller.
  def __rank(keys, values)
    __lend
    out = []
    __each_place do |i|
      n = out.size
      keys.__put(n, __keys.__at(i))
      values.__put(n, __values.__at(i))
      out << yield(keys.__at(n), values.__at(n))
    end
    out
  end

  def any?(pattern = (none = true))
    if none
      return __live > 0 unless block_given?

      each { |key, value| return true if yield(key, value) }
    else
      each { |pair| return true if pattern.__asked === pair }
    end
    false
  end

  def none?(pattern = (none = true))
    if none
      return __live == 0 unless block_given?

      each { |key, value| return false if yield(key, value) }
    else
      each { |pair| return false if pattern.__asked === pair }
    end
    true
  end

  def count(item = (all = true))
    return __live if all && !block_given?

    n = 0
    if all
      each { |key, value| n += 1 if yield(key, value) }
    else
      each { |pair| n += 1 if pair.__asked == item }
    end
    n
  end
end
