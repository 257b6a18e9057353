# frozen_string_literal: true

# What a regular expression has found: the text, where each group begins and ends in bytes, and the groups' names. A
# group that took no part begins at -1. Kernels neither keep such objects nor give them.
class MatchData
  def [](group, _count = (none = true))
    __group_form unless none
    if group.is_a?(Symbol)
      k = __names.index(group)
      __no_group if k.nil?
      return __part_at(k + 1)
    end
    __group_form if group.is_a?(String) || group.is_a?(Range)
    k = __c_int(group)
    k += size if k < 0
    k < 0 || k >= size ? nil : __part_at(k)
  end

  # The text of a group.
  def __part_at(k)
    from = __spans[2 * k]
    from < 0 ? nil : __text.__view(from, __spans[2 * k + 1] - from)
  end

  # The number of a group that must exist.
  def __known(group)
    if group.is_a?(Symbol)
      k = __names.index(group)
      __no_group if k.nil?
      return k + 1
    end
    __group_form if group.is_a?(String)
    k = __c_int(group)
    raise IndexError, "index #{k} out of matches" if k < 0 || k >= size

    k
  end

  # Ruby compares the regular expressions, too, which are not here.
  def ==(other)
    return false unless other.is_a?(MatchData)

    __compared_match
  end
  alias eql? ==

  def size
    __spans.size / 2
  end
  alias length size

  def to_a
    __build(size) { |k| __part_at(k) }
  end

  def captures
    __build(size - 1) { |k| __part_at(k + 1) }
  end
  alias deconstruct captures

  def values_at(*groups)
    groups.map { |group| self[group] }
  end

  def to_s
    __text.__view(__spans[0], __spans[1] - __spans[0])
  end

  def pre_match
    __text.__view(0, __spans[0])
  end

  def post_match
    __text.__view(__spans[1], __text.bytesize - __spans[1])
  end

  def begin(group)
    from = __spans[2 * __known(group)]
    from < 0 ? nil : __text.__count(from)
  end

  def end(group)
    k = __known(group)
    __spans[2 * k] < 0 ? nil : __text.__count(__spans[2 * k + 1])
  end

  def offset(group)
    k = __known(group)
    return [nil, nil] if __spans[2 * k] < 0

    [__text.__count(__spans[2 * k]), __text.__count(__spans[2 * k + 1])]
  end
end
