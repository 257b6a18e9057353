# Neighbours are combined from either end, at every second place.
#
# list = [9, 3, 1, 2, 8]
# gives: [[5, 7], [-9, 7]]

(0...2).pmap_within(:both_ways, list, 2) { |a, b| a - b }
