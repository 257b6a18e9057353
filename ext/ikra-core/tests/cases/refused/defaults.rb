# How long an array is decides which defaults a block uses that takes it apart.
#
# elements = [[1, 2], [3]]
# refused: name one parameter

elements.pmap { |a, b = 9| a + b }
