# One parameter for each list; nil stands for what they lack.
#
# elements = [1, 2, 3]
# gives: [17, 29, nil]

elements.pmap_within(:combine_2, [10, 20], 6..9) { |x, y, z| y && x + y + z }
