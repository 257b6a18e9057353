# The length of a part of an array.
#
# elements = [1, 2]
# refused: Integers only

elements.pmap { |x| [10, 11].take(x * 0.5).size }
