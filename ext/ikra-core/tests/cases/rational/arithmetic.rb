# Rationals with numbers that hurt: what is computed stays in lowest terms.
#
# other = Rational(-2, 3)
# elements = [Rational(1, 2), Rational(0, 1), Rational(-5, 6), Rational(2, 3), Rational(9223372036854775807, 2)]
# gives: [[(-1/6), (7/6), (-1/3), (-3/4), (-1/6), (-7/6), (-1/3), (-4/3), false, true, 1, true, false, true, true], [(-2/3), (2/3), (0/1), (0/1), (-2/3), (-2/3), (0/1), nil, false, true, 1, true, false, false, true], [(-3/2), (-1/6), (5/9), (5/4), (-3/2), (1/6), (5/9), (4/5), false, true, -1, false, true, false, true], [(0/1), (4/3), (-4/9), (-1/1), (0/1), (-4/3), (-4/9), (-1/1), false, true, 1, true, false, true, false], [(17/6), (25/6), (-7/3), (-21/4), (17/6), (-25/6), (-7/3), (-4/21), false, true, 1, true, false, true, false]]
# checks: 105
#
# other = Rational(7, 1)
# elements = [Rational(1, 2), Rational(0, 1), Rational(-22, 7), Rational(7, 1)]
# gives: [[(15/2), (-13/2), (7/2), (1/14), (15/2), (13/2), (7/2), (14/1), false, true, -1, false, true, true, true], [(7/1), (-7/1), (0/1), (0/1), (7/1), (7/1), (0/1), nil, false, true, -1, false, true, false, true], [(27/7), (-71/7), (-22/1), (-22/49), (27/7), (71/7), (-22/1), (-49/22), false, true, -1, false, true, false, true], [(14/1), (0/1), (49/1), (1/1), (14/1), (0/1), (49/1), (1/1), true, false, 0, false, true, true, false]]
#
# other = -3
# elements = [Rational(1, 2), Rational(0, 1), Rational(-22, 7), 4]
# gives: [[(-5/2), (7/2), (-3/2), (-1/6), (-5/2), (-7/2), (-3/2), (-6/1), false, true, 1, true, false, true, true], [(-3/1), (3/1), (0/1), (0/1), (-3/1), (-3/1), (0/1), nil, false, true, 1, true, false, false, true], [(-43/7), (-1/7), (66/7), (22/21), (-43/7), (1/7), (66/7), (21/22), false, true, -1, false, true, false, true], [1, 7, -12, -2, 1, -7, -12, -1, false, true, 1, true, false, true, false]]
#
# other = 0.5
# elements = [Rational(1, 2), Rational(0, 1), Rational(-22, 7), Rational(1, 3)]
# gives: [[1.0, 0.0, 0.25, 1.0, 1.0, 0.0, 0.25, 1.0, true, false, 0, false, true, true, true], [0.5, -0.5, 0.0, 0.0, 0.5, 0.5, 0.0, nil, false, true, -1, false, true, false, true], [-2.642857142857143, -3.642857142857143, -1.5714285714285714, -6.285714285714286, -2.642857142857143, 3.642857142857143, -1.5714285714285714, -0.1590909090909091, false, true, -1, false, true, false, true], [0.8333333333333333, -0.16666666666666669, 0.16666666666666666, 0.6666666666666666, 0.8333333333333333, 0.16666666666666669, 0.16666666666666666, 1.5, false, true, -1, false, true, true, true]]

elements.pmap do |x|
  y = x < 1_000_000 ? x : x - 4611686018427387900
  [y + other, y - other, y * other, y / other, other + y, other - y, other * y, y == 0 ? nil : other / y, y == other, other != y, y <=> other, other < y, other >= y, y > 0, y <= 0.5]
end
