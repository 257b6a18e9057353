# A captured variable that is written and not read keeps the last value written in index order.
#
# last = 0
# elements = [3, 8, 2, 7]
# after: last => 70

elements.peach { |x| last = x * 10 if x > 5 }
