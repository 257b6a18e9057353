# Sets of elements are told apart by eql?, not by ==; copies; products.
#
# list = [1, 2, 2, 3]
# floats = [1.0, 2.5, 0.0]
# elements = [1, 2]
# gives: [[[[1], [2, 2], [1, 2, 2, 3], [], [1], [2]], [[1, 1.0], [1, 2, 3, 1.0, 2.0], [1, 2, 3], [1, 1.0, 2.0], false, true], [[], [1, 2, 2, 3], [], true, [1, 2, 2, 3], [[1, 1], [2, 1], [2, 1], [3, 1]]], [7, 2, 2, 3], [1, 2, 2, 3, 1, 2, 2, 3], []], [[[2], [1], [1, 2, 2, 3], [], [2], [2]], [[2, 1.0], [1, 2, 3, 1.0, 2.0], [1, 2, 3], [2, 1.0, 2.0], false, true], [[], [1, 2, 2, 3], [], false, [1, 2, 2, 3], [[1, 2], [2, 2], [2, 2], [3, 2]]], [7, 2, 2, 3], [1, 2, 2, 3, 1, 2, 2, 3], []]]
# checks: 48

elements.pmap do |x|
  mixed = [x, 1.0, 2.0]
  a = [[x] - [1.0], [1, 2, 2] - [2.0, x], list.difference(floats), [x] & [1.0], list & mixed, list.intersection([2, 9])]
  b = [[x] | [1.0], list | mixed, list.union([x]), mixed.uniq, list.intersect?(floats), list.intersect?([x])]
  c = [[-0.0] - floats, list - [], [] - list, [x].include?(1.0), list.dup, list.product([x])]
  copy = list.dup
  copy[0] = 7
  [a, b, c, copy, list * 2, ([x] * 0)]
end
