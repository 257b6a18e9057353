# A branch of a tick that always raises, and conditions behind it that it would have assigned.
#
# limit = 7
# elements = [7]
# raises: FloatDomainError at line 13, index 0, tick 0: Infinity
#
# limit = 0
# elements = [7]
# raises: ZeroDivisionError at line 14, index 0, tick 0: divided by 0

elements.peach(2) do |x|
  (0..4).each do |i|
    a = limit > 3 ? (Float::INFINITY + x).floor : x + i
    i / limit if a > 0
  end
  (0..4).each do |i|
    a = (Float::INFINITY * limit).floor
    x += i if a == 3
  end
end
