# Where a part of an array starts.
#
# elements = [1, 2]
# refused: Integers only

elements.pmap { |x| [10, 11, 12][x * 0.5, 1].size }
