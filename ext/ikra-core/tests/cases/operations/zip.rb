# An array of what the lists have, which is taken apart.
#
# elements = [1, 2]
# gives: [11, nil]

elements.pmap_within(:zip_1, [10]) { |x, y| y && x + y }
