# What ends by itself ends on an endless Range too.
#
# elements = [1, 7]
# gives: [[2, 1, [1, 2], [], [1, 2, 3], true, [1, 4], [2, 3]], [8, 2, [7, 8], [7], [7, 8, 9], true, [7, 4], [8, 9]]]
# checks: 17

elements.pmap do |n|
  position = (n..).each_with_index { |x, i| break [x - 1, i + x % 2 + 3] if i > 0 }
  pairs = (n..).each_slice(2) { |pair| break pair }
  [(1..).find { |i| i > n }, (1..).find_index { |i| i * i > n }, pairs, (n..).take_while { |x| x < 8 && n > 1 },
   (n..).take(3), (1..).any? { |i| i > n }, position, (n + 1..).each_cons(2) { |pair| break pair }]
end
