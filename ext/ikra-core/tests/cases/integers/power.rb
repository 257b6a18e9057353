# Powers are exact; a negative exponent would give a Rational.
#
# elements = [0, 1, 2, 5]
# gives: [-2, -4, 13, -190]

elements.pmap { |x| x**2 + 2**x + -2**2 + (-3)**x }
