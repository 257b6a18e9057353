# Places of two dimensions in one parameter.
#
# gives: [0, 1, 10, 11]

(0...4).pmap_within(:cell_2, 2) { |(y, x)| y * 10 + x }
