# A symbol stands for the block that calls it.
#
# elements = [-2, 3]
# gives: [2, 3]
#
# elements = [-2.5, 3]
# gives: [2.5, 3]

elements.pmap(&:abs)
