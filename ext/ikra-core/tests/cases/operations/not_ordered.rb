# What a block that compares gives must be an order.
#
# list = [2, 1]
# raises: ArgumentError at line 6, index 0, tick 0: comparison of Integer with 2 failed

(0...1).pmap_within(:greatest, list, 2) { |a, _| nil if a == 1 }
