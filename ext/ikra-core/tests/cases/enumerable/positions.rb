# fetch, dig, values_at, fill, bsearch, combination, permutation, what changes an array in place, divmod, digits.
#
# list = [3, 1, 4, 1, 5]
# sorted = [1, 3, 5, 7, 9]
# rows = [[1, 2], [3, 4]]
# elements = [0, 1, 4]
# gives: [[[3, 5, 0, -18, -1, 3, nil, 3, [3, 3, 5, nil]], [[1, 1, 3, 4, 5], [5, 4, 3, 1, 1], [4, 3, 1, 1, 5], [4, 3, 5, 1, 1], [5, 4, 3, 1, 1]], [[5, 4, 3, 0, 0], [5, 7, 7, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 9], [0, 0, 0, 0, 0]], [1, nil, nil, 0, 8, nil], [96, [8, 5, 9, 8, 12, 9, 6, 10, 7, 10], 1, [[]], [], [2, -1, 2, -2, -2, -3, 0, -4, 1, 3, 3, -1, -2, 0, -3, -4, 2, 4, 1, 4], [[1, 2, 0], [1, 0, 2], [2, 1, 0], [2, 0, 1], [0, 1, 2], [0, 2, 1]], [[1], [2], [3]]], [[-3, 2], [-2, -1], [0], [15, 15]]], [[1, 5, 1, -18, -1, 3, nil, 1, [3, 1, 5, nil]], [[2, 2, 4, 5, 6], [6, 5, 4, 2, 2], [5, 4, 2, 2, 6], [4, 5, 2, 2, 6], [6, 5, 4, 2, 2]], [[6, 5, 4, 1, 1], [6, 7, 7, 1, 1], [0, 1, 2, 3, 4], [0, 1, 2, 3, 9], [0, 0, 0, 0, 0]], [1, nil, 1, 1, 8, nil], [96, [8, 5, 9, 8, 12, 9, 6, 10, 7, 10], 5, [[]], [], [2, -1, 2, -2, -2, -3, 0, -4, 1, 3, 3, -1, -2, 0, -3, -4, 2, 4, 1, 4], [[1, 2, 1], [1, 1, 2], [2, 1, 1], [2, 1, 1], [1, 1, 2], [1, 2, 1]], [[1], [2], [3]]], [[-2, 0], [-3, -7], [4, 3, 2, 1], [15, 15]]], [[5, 5, 4, -18, -1, 3, nil, 5, [3, 5, 5, nil]], [[5, 5, 7, 8, 9], [9, 8, 7, 5, 5], [8, 7, 5, 5, 9], [5, 5, 7, 8, 9], [9, 8, 7, 5, 5]], [[9, 8, 7, 4, 4], [9, 7, 7, 4, 4], [0, 4, 8, 12, 16], [0, 4, 8, 12, 9], [0, 0, 0, 0, 0]], [5, nil, nil, 2, 8, nil], [96, [8, 5, 9, 8, 12, 9, 6, 10, 7, 10], 5, [[]], [], [2, -1, 2, -2, -2, -3, 0, -4, 1, 3, 3, -1, -2, 0, -3, -4, 2, 4, 1, 4], [[1, 2, 4], [1, 4, 2], [2, 1, 4], [2, 4, 1], [4, 1, 2], [4, 2, 1]], [[1], [2], [3]]], [[-1, 0], [-4, -3], [6, 3, 9, 4], [15, 15]]]]
# checks: 129

elements.pmap do |x|
  a = [list.fetch(x), list.fetch(-1), list.fetch(9, x), list.fetch(-9) { |i| i * 2 }, (list.fetch(7) rescue -1), rows.dig(1, 0), rows.dig(9, 0), list.dig(x), list.values_at(0, x, -1, 9)]
  own = list.map { |y| y + x }
  b = [own.sort!.dup, own.reverse!.dup, own.rotate!.dup, own.sort_by! { |y| (y - 4).abs }.dup, own.sort! { |y, z| z <=> y }.dup]
  c = [own.fill(x, 3).dup, own.fill(7, 1, 2).dup, own.fill { |i| i * x }.dup, own.fill(9, -1).dup, own.fill(0).dup]
  d = [sorted.bsearch { |y| y >= x }, sorted.bsearch { |y| y > 9 }, sorted.bsearch { |y| x - y }, sorted.bsearch_index { |y| y > x }, (0..100).bsearch { |y| y * y >= 50 + x }, [].bsearch { |y| true }]
  sum = 0
  list.combination(2) { |y, z| sum += y * z }
  list.combination(2).each { |y, z| sum += y }
  e = [sum, list.combination(3).map { |three| three.sum }, list.combination(x).to_a.size, list.combination(0).to_a, list.combination(6).to_a, list.permutation(2).map { |y, z| y - z }, [1, 2, x].permutation.to_a, (1..3).to_a.permutation(1).to_a]
  f = [(x - 7).divmod(3), 17.divmod(x - 9), (x * 1234).digits, 255.digits(16)]
  [a, b, c, d, e, f]
end
