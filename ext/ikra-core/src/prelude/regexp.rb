# frozen_string_literal: true

# Regular expressions: the text that is matched does the work.
class Regexp
  def match?(text, from = 0)
    return false if text.nil?

    __pattern_text unless text.is_a?(String)
    text.match?(self, from)
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
end
