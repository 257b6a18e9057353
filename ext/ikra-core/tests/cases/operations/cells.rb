# Places of three dimensions, of which two are given.
#
# gives: [0, 1, 10, 11, 100, 101, 110, 111]

(0...8).pmap_within(:cells_3, 2, 2) { |z, y, x| z * 100 + y * 10 + x }
