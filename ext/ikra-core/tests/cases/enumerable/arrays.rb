# Iterators that make arrays, their chains, and what arrays are made of each other.
#
# list = [3, 1, 4, 1, 5, 9, 2, 6]
# elements = [1, 4]
# gives: [[[3, 1, 4, 1, 5, 9, 2, 6], [3.5, 4.5, 5.5, 9.5, 2.5, 6.5], [1, 1], [9, 6, 5], [[1, 1]], [8, 15, 8], 4, [0, 1, 8, 3, 20, 45, 12, 42], 54, [[4, 2, 6], [3, 1, 1, 5, 9]], [6, 2, 8, 2, 10, 18, 4, 12], [8, 10, 18, 12], [3, -3, 1, -1], [9, 5, 4, 1, 3, 1], 44, [1, 4, 4, 1, 2, 6], [0], [1, 2, 3], [[1, 3], [2, 1]], [1, 9, 3, 1, 4, 5, 9, 2, 6, 7, 3, 4, 5, 9, 6], [1, 9], [5, 9, 6]], [[12, 4, 16, 4, 20, 36, 8, 24], [5.5, 9.5, 6.5], [1, 1, 2, 3, 4], [9, 6, 5], [[1, 1], [2, 4], [3, 9], [4, 16]], [8, 15, 8], 4, [0, 1, 8, 3, 20, 45, 12, 42], 54, [[4, 2, 6], [3, 1, 1, 5, 9]], [15, 5, 20, 5, 25, 45, 10, 30], [8, 10, 18, 12], [3, -3, 1, -1], [9, 5, 4, 1, 3, 4], 44, [1, 4, 4, 1, 2, 6], [0, 1, 4, 9], [4, 5, 6], [[1, 3], [2, 4]], [1, 9, 3, 1, 4, 5, 9, 2, 6, 7, 3, 4, 5, 9, 6], [1, 9], [5, 9, 6]]]
# checks: 88

elements.pmap do |x|
  a = list.map { |y| y * x }
  b = list.select { |y| y > x }.map { |y| y + 0.5 }
  c = list.reject { |y| y > x }.sort
  d = list.sort_by { |y| -y }.take(3)
  e = (1..x).map { |i| [i, i * i] }
  f = list.each_slice(3).map { |s| s.sum }
  g = list.each_cons(2).count { |p, q| p < q }
  h = list.each_with_index.map { |y, i| y * i }
  i = list.map.with_index(1) { |y, j| y * j }.max
  j = list.partition { |y| y.even? }
  k = list.zip(a).map { |p, q| p + q }
  l = list.filter_map { |y| y * 2 if y > 3 }
  m = list.flat_map { |y| [y, -y] }.first(4)
  n = list.uniq.reverse.drop(2) + [x]
  o = list.take_while { |y| y < 5 }.size * 10 + list.drop_while { |y| y < 5 }.size
  p = list[1..2] + list[2, 2] + list[-2..]
  q = x.times.map { |t| t * t }
  r = Array.new(3) { |t| t + x }
  s = [[1, 2], [3, x]].transpose
  t = (list & [1, 9, 7]) + (list | [7]) + (list - [1, 2])
  u = list.minmax
  v = list.inject([]) { |acc, y| y > 4 ? acc + [y] : acc }
  [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v]
end
