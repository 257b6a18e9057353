# A block without parameters needs no elements.
#
# elements = [1, "a String", :c]
# gives: [false, true, true]

elements.pmap_within(:truth) { Ikra.index > 0 }
