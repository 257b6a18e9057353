# The places of elements within chunks of three, of equal ones in their order.
#
# list = [3, 1, 3, 9, 8, 7, 5]
# gives: [1, 0, 2, 5, 4, 3, 6]

(0...7).pmap_within(:rank, list, 3) { |a, b| a <=> b }
