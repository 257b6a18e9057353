# Splats with names in what is taken apart, however deep, in Ruby's order.
#
# elements = [3, -1]
# gives: [[[1, 2, [3, 3], 4, [1, [2, 3, 3], 4]], [3, [2, 3], [4, 5], [6]], [[1], 2, 3, [4, 5], [6]], [[], 1, nil, 9]], [[1, 2, [3, -1], 4, [1, [2, 3, -1], 4]], [-1, [2, 3], [4, 5], [6]], [[1], 2, -1, [4, 5], [6]], [[], 1, nil, 9]]]
# checks: 34

elements.pmap do |x|
  whole = (a, (b, *c), d = 1, [2, 3, x], 4)
  list = [[x, 2, 3], [4, 5, 6]]
  (e, *f), (*g, h) = list
  *i, j, (k, *l) = [1, 2, [x, 4, 5]]
  (*m, n), o, p = [1], nil, 9
  [[a, b, c, d, whole], [e, f, g, [h]], [i, j, k, l, [6]], [m, n, o, p]]
end
