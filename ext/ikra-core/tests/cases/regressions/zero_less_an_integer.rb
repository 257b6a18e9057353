# 0.0 less an Integer 0 is 0.0, not -0.0.
#
# elements = [0, 3]
# gives: [0.0, -3.0]

elements.pmap { |x| 0.0 - x }
