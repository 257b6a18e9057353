# frozen_string_literal: true

# What iterators of numbers without a block give one after the other.
class Integer
  def __list_times
    (0...self).to_a
  end

  def __list_upto(last)
    (self..last).to_a
  end

  def __list_downto(last)
    (last..self).to_a.reverse
  end
end

module Numeric
  def __list_step(limit = nil, step = 1, by: step, to: limit)
    __no_limit if to.nil?
    out = []
    step(to, by) { |x| out << x }
    out
  end
end
