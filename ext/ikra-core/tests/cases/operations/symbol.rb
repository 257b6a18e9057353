# A Symbol is sent to the first of what the block would be given, with the others.
#
# elements = [7, 8]
# gives: [7, 9]

elements.pmap_within(:with_index, 0, &:+)
