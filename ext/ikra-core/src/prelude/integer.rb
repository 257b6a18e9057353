# frozen_string_literal: true

# What Integer's iterators without a block give one after the other.
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

  def __list_step(last, by = 1)
    raise ArgumentError, "step can't be 0" if by == 0

    if by > 0
      (self..last).__list_step(by)
    else
      (-self..-last).__list_step(-by).map { |i| -i }
    end
  end
end
