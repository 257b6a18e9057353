# For effect, what the block's last statement adds up is a sum.
#
# elements = [1, 2, 3]
# sum = 0
# after: sum => 26

elements.peach_within(:with_index, 1) { |x, i| sum += x * i + 4 }
