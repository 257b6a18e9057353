# The wrong number of arguments is an ArgumentError when it is reached.
#
# elements = [1, 2]
# gives: [2, 3]
#
# elements = [1, 20]
# raises: ArgumentError at line 9, index 1, tick 0: wrong number of arguments (given 1, expected 2)

def two(a, b) = a + b

elements.pmap { |x| x > 10 ? two(x) : two(x, 1) }
