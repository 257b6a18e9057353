# The first of the least by a block; what it gives must be an order.
#
# list = [3, 1, -1, 2, 7]
# gives: [1, -1, 7]
#
# list = [2, nil]
# raises: NoMethodError at line 9, index 0, tick 0: undefined method `abs' for nil:NilClass

(0...3).pmap_within(:least, list, 2) { |a, b| a.abs <=> b.abs }
