# The index comes beside the element, from an offset on. Arrays among two parameters stay whole.
#
# elements = [[1, 2], [3, 4]]
# offset = 10
# gives: [12, 15]
#
# elements = [[1, 2]]
# offset = -1
# gives: [1]

elements.pmap_within(:with_index, offset) { |pair, i| pair.last + i }
