# frozen_string_literal: true

# Texts of Symbols. The bridge keeps two Hashes with a text for each Symbol that a kernel may meet.
class Symbol
  # The values of all Hashes have one type, so inference must see that these are Strings.
  def name
    text = Ikra::SYMBOL_NAMES.fetch(self) { __symbol_form }
    text.is_a?(String) ? text : __symbol_form
  end

  def to_s
    name.dup
  end
  alias id2name to_s

  def inspect
    text = Ikra::SYMBOL_INSPECTIONS.fetch(self) { __symbol_form }
    text.is_a?(String) ? text.dup : __symbol_form
  end

  def size
    name.size
  end
  alias length size

  def empty?
    name.empty?
  end

  def <=>(other)
    return nil unless other.is_a?(Symbol)

    name <=> other.name
  end

  def <(other)
    __compared(other) < 0
  end

  def <=(other)
    __compared(other) <= 0
  end

  def >(other)
    __compared(other) > 0
  end

  def >=(other)
    __compared(other) >= 0
  end

  def between?(min, max)
    __compared(min) >= 0 && __compared(max) <= 0
  end

  def casecmp(other)
    return nil unless other.is_a?(Symbol)

    name.casecmp(other.name)
  end

  def casecmp?(other)
    return nil unless other.is_a?(Symbol)

    name.casecmp?(other.name)
  end

  def [](at, length = (one = true))
    one ? name[at] : name[at, length]
  end
  alias slice []

  def start_with?(prefix = (none = true), *more)
    return false if none
    return true if name.__starts?(prefix)

    more.each { |other| return true if name.__starts?(other) }
    false
  end

  def end_with?(suffix = (none = true), *more)
    return false if none
    return true if name.__ends?(suffix)

    more.each { |other| return true if name.__ends?(other) }
    false
  end
end
