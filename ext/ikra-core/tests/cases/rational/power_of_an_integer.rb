# What is to be a Rational for negative exponents is one from the start.
#
# elements = [1, -1, 2, -3]
# exponent = -3
# gives: [(1/1), (-1/1), (1/8), (-1/27)]
# checks: 6
#
# elements = [0, 2, -3]
# exponent = 2
# gives: [(0/1), (4/1), (9/1)]
#
# elements = [2, 0]
# exponent = -1
# raises: ZeroDivisionError at line 16, index 1, tick 0: divided by 0

elements.pmap { |x| Rational(x)**exponent }
