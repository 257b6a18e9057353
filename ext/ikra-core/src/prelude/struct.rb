# frozen_string_literal: true

# Members by position; Enumerable does the rest.
class Struct
  def each
    i = 0
    while i < __size
      yield(__at(i))
      i += 1
    end
    self
  end

  # What `__copy` gave has the members, too.
  def initialize_copy(_other)
    self
  end

  def to_a
    __build(__size) { |i| __at(i) }
  end
  alias deconstruct to_a
  alias values to_a

  def members
    __build(__size) { |i| __member_name(i) }
  end

  def to_h
    out = {}
    i = 0
    while i < __size
      if block_given?
        out.__add_pair(yield(__member_name(i), __at(i)))
      else
        out[__member_name(i)] = __at(i)
      end
      i += 1
    end
    out
  end

  def values_at(*places)
    places.map do |at|
      __member_parts if at.is_a?(Range)
      self[__int(at)]
    end
  end

  def dig(member, second = (one = true), third = (two = true), fourth = (three = true), fifth = (four = true))
    __no_member_text if member.is_a?(String)
    n = member.is_a?(Symbol) ? __place(member) : __int(member)
    n += __size if n < 0 && !member.is_a?(Symbol)
    return nil if n < 0 || n >= __size

    value = __member(n)
    return value if one
    return value.__dug(second) if two
    return value.__dug(second, third) if three
    return value.__dug(second, third, fourth) if four

    value.__dug(second, third, fourth, fifth)
  end
end
