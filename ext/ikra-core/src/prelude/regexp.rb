# frozen_string_literal: true

# Regular expressions: the text that is matched does the work.
class Regexp
  def match?(text, from = 0)
    return false if text.nil?

    __pattern_text unless text.is_a?(String)
    text.match?(self, from)
  end

  def match(text, from = 0, &block)
    return nil if text.nil?

    __pattern_text unless text.is_a?(String)
    text.match(self, from, &block)
  end

  # The names of its groups, in order.
  def __group_names
    list = []
    return list if __numbered?

    k = 1
    while k <= __groups
      list << __group_name(k)
      k += 1
    end
    list
  end

  def ===(text)
    if text.is_a?(String)
      text.match?(self)
    else
      __pattern_text if text.is_a?(Symbol)
      false
    end
  end

  def =~(text)
    return nil if text.nil?

    __pattern_text unless text.is_a?(String)
    text =~ self
  end

  def !~(text)
    !match?(text)
  end

  def __seen(text, _last)
    text.is_a?(String) ? self : :unknown
  end

  def __seen_text(text, last)
    text.is_a?(String) ? text : last
  end

  def __lost(_argument, _last)
    :unknown
  end
end

module Kernel
  def __nth_part(_pattern, _group, _start)
    __no_match_form
  end

  def __place_of(_part)
    0
  end

  def __seen(pattern, last)
    is_a?(Proc) || pattern.is_a?(Regexp) ? :unknown : last
  end

  def __seen_text(_pattern, last)
    last
  end

  def __lost(pattern, last)
    is_a?(Proc) || pattern.is_a?(Regexp) ? :unknown : last
  end
end

class NilClass
  def =~(_pattern)
    nil
  end
end
