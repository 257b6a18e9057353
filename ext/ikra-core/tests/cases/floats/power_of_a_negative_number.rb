# With a fraction as its exponent it makes a Complex. A kernel's power of Floats is a Float.
#
# elements = [4.0, 0.0, -0.0]
# exponent = 0.5
# gives: [2.0, 0.0, 0.0]
#
# elements = [4.0, -8.0]
# exponent = 3.0
# gives: [64.0, -512.0]
#
# elements = [4.0, -8.0]
# exponent = 0.5
# differs: a power of Floats is a Float
# raises: RangeError at line 16, index 1, tick 0: a negative number ** 0.5 is a Complex; in kernels Float ** gives Floats

elements.pmap { |x| x**exponent }
