# All values on the way of a chunk, as an array of each.
#
# list = [1, 2, 3, 4, 5]
# gives: [[1, 3, 6], [4, 9]]

(0...2).pmap_within(:scan, list, 3) { |a, b| a + b }
