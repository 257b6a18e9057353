# Integers and Floats in each other's place.
#
# elements = [3, -2, 2.5, 1e15]
# gives: [5.5, -2.0, 3.5, 1.500000000000001e+15]
#
# elements = [1e19]
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 10, index 0, tick 0: to_i gives an Integer beyond 64 bits

elements.pmap { |x| x.to_i.to_f / 2 + (x == x.to_i ? 1 : 0) + x.to_f }
