# The places of the elements of chunks of three in their order, of equal ones the first first.
#
# list = [3, 1, 3, 9, 8, 7, 5]
# gives: [[1, 0, 2], [5, 4, 3], [6]]
# checks: 5
#
# list = 1..7
# gives: [[0, 1, 2], [3, 4, 5], [6]]
#
# list = [1, nil, 3, 4, 5, 6, 7]
# raises: ArgumentError at line 13, index 0, tick 0: comparison of Integer with nil failed

(0...3).pmap_within(:sorted, list, 3) { |a, b| a <=> b }
