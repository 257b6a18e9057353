# The first element for which the block is true ends the section: what comes after neither raises nor does anything.
#
# elements = [5, 3, 2, 0, 7]
# sum = 0
# gives: 2
# after: sum => 10
#
# elements = [5, 3]
# sum = 0
# after: sum => 8
#
# elements = [5, 0, 2]
# sum = 0
# raises: ZeroDivisionError at line 18, index 1, tick 0: divided by 0

elements.pfind_within(:truth) do |x|
  sum += x
  12 / x > 4
end
