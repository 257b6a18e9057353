# Sums, differences, products and negation.
#
# elements = [0, 1, -1, 12345, -99999]
# gives: [6, 5, 5, -152399019, -9999799995]
#
# elements = []
# gives: []

elements.pmap { |x| -(x + 3) * (x - 2) + +x }
