# Two sorted neighbours become one; a chunk without a neighbour stays.
#
# list = [1, 4, 4, 0, 4, 6, 2, 3]
# gives: [1, 2, 3, 0, 4, 5, 6, 7]

(0...8).pmap_within(:merged, list, 3) { |a, b| a <=> b }
