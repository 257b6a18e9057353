# zip with Ranges and several arrays, transpose, flat_map of what is no array, flatten, step lists, minmax_by, cycle.
#
# list = [3, 1, 4]
# rows = [[1, 2], [3, 4], [5, 6]]
# elements = [1, 4]
# gives: [[[[[3, 1], [1, 2], [4, 3]], [[3, 1], [1, 2], [4, nil]], [[3, 1, 7], [1, nil, 8], [4, nil, 9]], [[3, 1, 1, 0.5], [1, nil, 2, nil], [4, nil, 3, nil]], [[3], [1], [4]], [[1, 3, 4], [2, 1, 5], [3, 4, 6]]], [[3, 1, 4], [3, 3, 1, 4, 4], [[3], [1], [4]], [1, 1, 2], [1, 2]], [[[1, 3, 5], [2, 4, 6]], [1, 3, 5], [1.0], [9, 5, 1], [1.0, 1.5, 2.0, 2.5], [1, 2, 3, 4, 5, 6, 7, 8, 9]], [[4, 1], [1, 1], [1, 4], [3, 1, 4, 3, 1, 40], 1]], [[[[3, 4], [1, 5], [4, 6]], [[3, 1], [1, 2], [4, nil]], [[3, 4, 7], [1, nil, 8], [4, nil, 9]], [[3, 4, 1, 0.5], [1, nil, 2, nil], [4, nil, 3, nil]], [[3], [1], [4]], [[1, 3, 4], [2, 1, 5], [3, 4, 6]]], [[3, 1, 4], [3, 1, 4], [[3], [1], [4]], [1, 4, 2], [4, 2]], [[[1, 3, 5], [2, 4, 6]], [1, 3, 5, 7, 9], [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], [9, 5], [1.0, 1.5, 2.0, 2.5], [1, 5, 9]], [[4, 1], [4, 4], [1, 4], [3, 1, 4, 3, 1, 4, 3, 1, 4, 3, 1, 4, 12, 4, 40], 1]]]
# checks: 110

elements.pmap do |x|
  a = [list.zip(x..9), list.zip(1..2), list.zip([x], [7, 8, 9]), list.zip([x], 1..3, [0.5]), list.zip, (1..3).zip(list, 4..6)]
  b = [list.flat_map { |y| y }, list.flat_map { |y| y > x ? [y, y] : y }, list.flat_map { |y| [[y]] }, [1, [x, 2]].flatten, [[x], [2]].flatten(1)]
  c = [rows.transpose, 1.step(by: 2, to: x + 5).to_a, 1.step(x, 0.5).to_a, 9.step(x, -4).to_a, (1.0..2.5).step(0.5).to_a, (1..9).step(x).to_a]
  seen = []
  list.cycle(x) { |y| seen << y }
  list.zip([x, x]) { |y, z| seen << y * (z || 10) }
  d = [list.minmax_by { |y| -y }, [x].minmax_by { |y| y }, list.minmax, seen, list.count(x) { |y| y > 0 }]
  [a, b, c, d]
end
