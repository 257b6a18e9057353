# What is no number is added to no Complex; a quotient of Integers by zero.
#
# elements = [nil]
# raises: TypeError at line 9, index 0, tick 0: nil can't be coerced into Complex
#
# elements = [true]
# raises: TypeError at line 9, index 0, tick 0: true can't be coerced into Complex

elements.pmap { |x| Complex(1.0, 2.0) + x }
