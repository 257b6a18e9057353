# return would leave the method around the block.
#
# elements = [1, 2]
# refused: next

elements.pmap { |x| return x if x > 1 }
