# frozen_string_literal: true

# The elements of Enumerators of Arrays, Ranges and Hashes, that is, of iterators that are called without a block. These
# elements are known in advance, so a list of them has the same effect as Ruby's Enumerator.
module List
  def __list_each
    to_a
  end
  alias __list_each_entry __list_each

  def __list_each_pair
    to_a
  end

  def __list_each_key
    keys
  end

  def __list_each_value
    values
  end

  def __list_combination(count)
    out = []
    to_a.combination(count) { |x| out << x }
    out
  end

  def __list_permutation(count = size)
    out = []
    to_a.permutation(count) { |x| out << x }
    out
  end

  def __list_repeated_combination(count)
    out = []
    to_a.repeated_combination(count) { |x| out << x }
    out
  end

  def __list_repeated_permutation(count)
    out = []
    to_a.repeated_permutation(count) { |x| out << x }
    out
  end

  def __list_each_index
    __build(size) { |i| i }
  end

  def __span_each_index
    0...size
  end

  def __list_reverse_each
    to_a.reverse
  end

  def __list_with_index(start = 0)
    list = to_a
    __build(list.size) { |i| [list.__at(i), i + start] }
  end
  alias __list_each_with_index __list_with_index

  def __list_each_slice(length)
    count = __int(length)
    raise ArgumentError, "invalid slice size" if count <= 0

    list = to_a
    __build((list.size + count - 1) / count) do |i|
      list.__slice(i * count, (i + 1) * count < list.size ? count : list.size - (i * count))
    end
  end

  def __list_each_cons(length)
    count = __int(length)
    raise ArgumentError, "invalid size" if count <= 0

    list = to_a
    __build(list.size < count ? 0 : list.size - count + 1) { |i| list.__slice(i, count) }
  end
end
