# return would leave the method around the block, here as anywhere.
#
# elements = [1]
# refused: return would leave the method around the block

elements.pmap_within(:truth) { |x| return x }
