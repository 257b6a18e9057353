# A chunk's elements are combined from the first on; the last chunk may be short. The block need not commute.
#
# list = [1, 2, 3, 4, 5]
# gives: [-8, 5]
#
# list = 1..5
# gives: [-8, 5]
#
# list = [1.5, nil, 3, 4, 5]
# raises: TypeError at line 15, index 0, tick 0: nil can't be coerced into Float
#
# list = [8, 0.5, 2, 4]
# gives: [1.5, nil]

(0...2).pmap_within(:fold, list, 4) { |a, b| a - b }
