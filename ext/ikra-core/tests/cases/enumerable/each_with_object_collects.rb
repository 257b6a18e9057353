# The list is a variable around the block, so that it may grow.
#
# elements = [0, 3]
# gives: [[[], [[1, 0], [2, 0]], [], [0, 0], [[0, []]]], [[0, 3, 6], [[1, 3], [2, 3]], [9, 6, 3], [3, 3], [[0, [0]], [1, [0, 1]], [2, [0, 1, 2]], [3, [0, 1, 2, 3]]]]]
# checks: 25

elements.pmap do |n|
  list = n
  multiples = (0...n).each_with_object([]) { |i, list| list << i * n }
  pairs = [[1, 2]].each_with_object([]) { |(a, b), all| all << [a, list] << [b, list] }
  down = n.downto(1).each_with_object([]) do |i, out|
    i == 0 ? next : out.push(i * n)
  end
  sums = [1, 2, 3].each_with_object([0, 0]) { |i, totals| totals[i % 2] = n }
  nested = (0..n).each_with_object([]) do |i, rows|
    rows << [i, (0..i).each_with_object([]) { |j, row| row << j if n > 0 }]
  end
  [multiples, pairs, down, sums, nested]
end
