# A block with one parameter is given an array of key and value; Enumerable goes through such arrays.
#
# table = { 1 => 10, 2 => 20, 3 => 5 }
# none = {}
# elements = [1, 4]
# gives: [[[114, [10, 40, 15], [[1, 10], [2, 20], [3, 5]], [10, 20, 5], [[1, 10], [2, 20], [3, 5]], [1, 10], [[1, 10], [2, 20]]], [35, 6, 3, 1, 3], [[1, 10], true, true, true, true], [[3, 5], [2, 20], [[2, 20], [1, 10], [3, 5]], [[3, 5], [1, 10], [2, 20]], [[3, 5], [2, 20]], [[1, 10], [2, 20], [3, 5]], [3, 5]], [66, [2, 20], [[[1, 10], [2, 20]], [[3, 5]]], [[[1, 10], 1], [[2, 20], 2], [[3, 5], 3]], [[1, 10], [3, 5]]], [[1, 10, 2, 20, 3, 5], [1, 2], [[[1, 10], [2, 20]], [[3, 5]]], [[1, 10], [2, 20]]], [[1, 2, 3], [10, 20, 5], [10, 10], 2, 10, 20, true, [[1, 10], [2, 20], [3, 5]]], [[], [1, 22, 13], [10, 40, 15]], [[], false, true, nil, nil, 0, [], nil], [[1, 10]], [[3, 5]], [[1, 10], [2, 20]], 1, 3, 126], [[219, [10, 40, 15], [[1, 10], [2, 20], [3, 5]], [10, 20, 5], [[1, 10], [2, 20], [3, 5]], [1, 10], [[1, 10], [2, 20]]], [140, 6, 3, 1, 3], [[2, 20], false, true, true, false], [[3, 5], [2, 20], [[2, 20], [1, 10], [3, 5]], [[3, 5], [1, 10], [2, 20]], [[3, 5], [2, 20]], [[1, 10], [2, 20], [3, 5]], [3, 5]], [69, [2, 20], [[[1, 10], [2, 20]], [[3, 5]]], [[[1, 10], 4], [[2, 20], 2], [[3, 5], 3]], [[1, 10], [3, 5]]], [[1, 10, 2, 20, 3, 5], [1, 2], [[[1, 10], [2, 20]], [[3, 5]]], [[1, 10], [2, 20]]], [[1, 2, 3], [10, 20, 5], [10, nil], 2, 8, 20, true, [[1, 10], [2, 20], [3, 5]]], [[], [1, 22, 13], [40, 100, 30]], [[], false, true, nil, nil, 0, [], nil], [[1, 10]], [[3, 5]], [[1, 10], [2, 20]], 1, 3, 231]]
# checks: 178

elements.pmap do |x|
  sum = 0
  table.each { |pair| sum += pair[1] * x }
  table.each_pair { |*all| sum += all.size }
  table.each_with_index { |(key, value), i| sum += key * value * i }
  table.each { |(key, value)| sum += key }
  a = [sum, table.map { |key, value| key * value }, table.map { |pair| pair }, table.map(&:last), table.to_a, table.first, table.first(2)]
  b = [table.sum { |key, value| value * x }, table.sum(&:first), table.count { |pair| pair[1] > x }, table.count([2, 20]), table.count]
  c = [table.find { |key, value| value > x * 4 }, table.any? { |pair| pair[0] > x }, table.all? { |key, value| value > x }, table.none? { |_, v| v > 99 }, table.one? { |k, _| k == x }]
  d = [table.min_by { |key, value| value }, table.max_by { |pair| pair[1] }, table.sort_by { |key, value| -value }, table.sort_by(&:last), table.minmax_by { |_, v| v }, table.sort, table.max]
  e = [table.reduce(x) { |s, (key, value)| s + key * value }, table.inject { |p, q| p[1] > q[1] ? p : q }, table.each_slice(2).to_a, table.zip([x, 2, 3]), table.uniq { |_, v| v > 9 }]
  f = [table.flat_map { |key, value| [key, value] }, table.filter_map { |key, value| key if value > 5 }, table.partition { |_, value| value > 5 }, table.find_all { |_, v| v > 5 }]
  g = [table.keys, table.values, table.values_at(1, x), table.key(20), table.fetch(x) { |key| key * 2 }, table.dig(2), table.value?(5), table.entries]
  h = [table.each_with_object([]) { |(key, value), memo| sum += key }, table.each_with_index.map { |(k, v), i| k + v * i }, table.map.with_index(x) { |(k, v), i| v * i }]
  i = [none.map { |pair| pair }, none.any?, none.all?, none.first, none.min_by { |_, v| v }, none.sum, none.to_a, none.find { |pair| pair }]
  [a, b, c, d, e, f, g, h, i, table.take(1), table.drop(2), table.take_while { |_, v| v > 5 }, table.find_index { |_, v| v == 20 }, table.reverse_each { |k, _| sum += k }.size, sum]
end
