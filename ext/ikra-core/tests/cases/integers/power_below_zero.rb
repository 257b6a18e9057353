# A negative exponent makes a Rational of any base but 1 and -1. A kernel's power of an Integer is an Integer.
#
# elements = [1, -1, 1]
# exponent = -3
# gives: [1, -1, 1]
#
# elements = [1, 0]
# exponent = -1
# raises: ZeroDivisionError at line 21, index 1, tick 0: divided by 0
#
# elements = [1, 2]
# exponent = 63
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 21, index 1, tick 0: ** gives an Integer beyond 64 bits
#
# elements = [1, 2]
# exponent = -1
# differs: a power of an Integer is an Integer
# raises: RangeError at line 21, index 1, tick 0: Integer ** -1 is a Rational; in kernels Integer ** gives Integers: write Rational(x) ** y

elements.pmap { |x| x**exponent }
