# Methods of each_with_index and zip whose blocks take both parts of a pair: no list is made, and no pairs but results.
# Elements of `own` are assigned, so `zip` lists what it takes of `own` first.
#
# rows = [[3, 1, 2], [5, 5, 4]]
# weights = [0.5, 0.25, 2.0]
# sums = [1, 2, 3]
# elements = [0, 1]
# gives: [[[1, 1], [3, 0], [2, 2], 4, 2, [0, 0, 0], 2, 5.75, [1.5, 0.25, 4.0], 0, 11], [[4, 2], [5, 0], [4, 2], 12, 0, [0, 0, 0], 3, 11.75, [2.5, 1.25, 8.0], 0, 27]]
# checks: 32

elements.pmap do |i|
  row = rows[i]
  own = [0, 0, 0]
  total = 0
  sums.zip(row).map { |a, b| total += a * b }
  listed = own.zip(row).map { |a, b| own[1] = own[2] = b; a }
  own = [0, 0, 0]
  [
    row.each_with_index.min_by { |x, _| x }, row.each_with_index.max_by { |x, _| x },
    row.each_with_index.find { |x, k| k > 0 && x.even? }, row.each_with_index.sum { |x, k| x - k + k / 2 },
    row.each_with_index.count { |x, k| x < k + 2 }, listed, row.zip(weights).count { |x, w| x * w > 1.0 },
    row.zip(weights).sum { |x, w| x * w }, row.zip(weights).map { |x, w| x * w },
    own.zip(row).sum { |x, y| own[0] = 7; x * y / 100 }, total
  ]
end
