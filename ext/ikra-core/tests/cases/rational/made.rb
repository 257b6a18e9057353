# Rational() takes Integers and Rationals, of any sign.
#
# elements = [1, -4, 6]
# gives: [[(1/1), (6/1), (-1/4), (3/1), (1/36), (1/3), (5/4), (1/1)], [(-4/1), (-3/2), (1/1), (-3/4), (-1/9), (-4/3), (-5/1), (-4/1)], [(6/1), (1/1), (-3/2), (1/2), (1/6), (2/1), (15/2), (6/1)]]
# checks: 12
#
# elements = [3, 0, 5]
# raises: ZeroDivisionError at line 10, index 1, tick 0: divided by 0

elements.pmap { |x| [Rational(x), Rational(6, x), Rational(x, -4), Rational(1, Rational(x, 3)), Rational(Rational(x, 9), 4), x / 3r, 1.25r * x, x.to_r] }
