# IEEE arithmetic, mixed with Integers.
#
# elements = [0.5, -2.25, 1e300, -0.0]
# gives: [1.0, -2.625, 1.5e+300, 0.75]
#
# elements = [1, -3, 0]
# gives: [2.0, -3.75, 0.75]

elements.pmap { |x| (x * 3 + 1.5) / 2 - x % 0.75 }
