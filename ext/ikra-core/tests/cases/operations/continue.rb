# What comes before a chunk goes before each of its elements.
#
# list = [1, 2, 3, 4]
# before = [10, 20]
# gives: [1, 2, 13, 14]

(0...4).pmap_within(:continue, list, before, 2) { |a, b| a + b }
