# Splats: parameters that collect, in arrays, in assignments, in blocks.
#
# list = [3, 1, 4, 1, 5]
# elements = [1, 2]
# gives: [[3, [1, 4, 1, 5], [3, 1, 4, 1], 5, 1, [], 5, [3, 1, 4, 1, 5, 1, 1], [1, 4, 1, 5, 9], [[1, [2, 3]], [4, []]], 21, [10], 0, 11, 63, [1, 7, [], 1], [1, 1, [3, 4], 5], [2, 3]], [3, [1, 4, 1, 5], [3, 1, 4, 1], 5, 2, [], 5, [3, 1, 4, 1, 5, 2, 1, 2], [1, 4, 1, 5, 9], [[1, [2, 3]], [4, []]], 22, [10], 0, 21, 73, [1, 7, [], 2], [1, 2, [3, 4], 5], [3, 4]]]
# checks: 56

module Calls
  def self.all(*list) = list.sum * 10 + list.size
  def self.some(a, b = 7, *c, d) = [a, b, c, d]
  def self.tail(head, *tail) = tail.map { |y| y + head }
end

elements.pmap do |x|
  a, *b = list
  *c, d = list
  e, *f, g = [x, 5]
  h = [*list, x, *(1..x)]
  i = [*b]
  i << 9
  j = [[1, 2, 3], [4]].map { |p, *q| [p, q] }
  k = ->(p, *q) { q.size * 10 + p }.call(x, 8, 9)
  l = [[1, [2, 3, 4]]].map { |p, (q, *r)| p + q + r.sum }
  [a, b, c, d, e, f, g, h, i, j, k, l, Calls.all, Calls.all(x), Calls.all(x, 2, 3), Calls.some(1, x), Calls.some(1, x, 3, 4, 5), Calls.tail(x, 1, 2)]
end
