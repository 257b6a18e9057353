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

  def to_a
    __build(__size) { |i| __at(i) }
  end
  alias deconstruct to_a
  alias values to_a
end
