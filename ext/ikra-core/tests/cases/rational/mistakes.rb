# A Rational and what is no number; division by zero.
#
# elements = [Rational(1, 2)]
# other = nil
# raises: TypeError at line 15, index 0, tick 0: nil can't be coerced into Rational
#
# elements = [Rational(1, 2)]
# other = 0
# raises: ZeroDivisionError at line 15, index 0, tick 0: divided by 0
#
# elements = [Rational(1, 2)]
# other = Rational(0, 1)
# raises: ZeroDivisionError at line 15, index 0, tick 0: divided by 0

elements.pmap { |x| (x / other) + (x * x) }
