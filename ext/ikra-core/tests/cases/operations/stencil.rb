# Neighbours by their places in a list of two rows of four; at an edge there is what fills it.
#
# list = [1, 2, 3, 4, 5, 6, 7, 8]
# gives: [nil, 2, 2, nil, nil, 2, 2, nil]

(0...8).pmap_within(:stencil_2_2, list, nil, -1, 1, 4, 0, 2, 1, 3) { |left, right| right - left }
