# Two sorted neighbours become one, in parts; a run without a neighbour stays.
#
# list = [1, 4, 4, 0, 4, 6, 2, 3]
# places = [0, 1, 2, 3, 4, 5, 6, 7]
# part = 2
# gives: [[3, 0], [1, 2], [4, 5], [6, 7]]
# checks: 19
#
# list = [5, 6, 7, 1, 2, 3]
# places = [0, 1, 2, 3, 4, 5]
# part = 2
# gives: [[3, 4], [5, 0], [1, 2], []]

(0...4).pmap_within(:merged, list, places, 3, part) { |a, b| a <=> b }
