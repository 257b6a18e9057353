# Keys and values of several kinds: blocks with two parameters know which is which.
#
# names = { a: 1, b: 2.5, c: 7 }
# elements = [1, 4]
# gives: [[[[1, 2.5, 7], 10.5, 2, [[:a, 1], [:b, 2.5], [:c, 7]], [:a, :b, :c], [1, 2.5, 7]], [[:a, 1], [:a, 1], [[:c, 7], [:b, 2.5], [:a, 1]], [:b, 2.5]], [true, false, [[[:b, 2.5], [:c, 7]], [[:a, 1]]], [[:a, 1]]], 2.5, [2.5, 7], [1, 1, 2.5, 2.5, 7, 7], [0, 1, 1]], [[[4, 10.0, 28], 10.5, 1, [[:a, 1], [:b, 2.5], [:c, 7]], [:a, :b, :c], [1, 2.5, 7]], [[:a, 1], [:a, 1], [[:c, 7], [:b, 2.5], [:a, 1]], [:c, 7]], [true, false, [[[:c, 7]], [[:a, 1], [:b, 2.5]]], [[:a, 1]]], 2.5, [2.5, 7], [1, 1, 2.5, 2.5, 7, 7], [0, 4, 4]]]
# checks: 55

elements.pmap do |x|
  sum = 0
  names.each { |key, value| sum += value if key == :b }
  a = [names.map { |key, value| value * x }, names.sum { |_, value| value }, names.count { |key, value| value > x }, names.to_a, names.keys, names.values]
  b = [names.min_by { |_, value| value }, names.max_by { |_, value| -value }, names.sort_by { |_, value| -value }, names.find { |_, value| value > x }]
  c = [names.any? { |_, value| value > x }, names.all? { |key, value| value > x }, names.partition { |_, value| value > x }, names.find_all { |key, _| key == :a }]
  [a, b, c, sum, names.filter_map { |key, value| value if key != :a }, names.flat_map { |key, value| [value, value] }, names.each_with_index.map { |(key, _), i| key == :a ? i : x }]
end
