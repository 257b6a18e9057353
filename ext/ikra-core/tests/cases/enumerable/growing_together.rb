# Arrays that one assignment makes grow apart; one that two variables hold does not grow.
#
# elements = [0, 1, 5]
# gives: [[[0], [1, 2], []], [[1], [2, 2], [0]], [[5, 1, 3], [6, 2, 0, 2, 4], [0, 1, 2, 3, 4]]]
# checks: 10

elements.pmap do |x|
  odd, even, all = [], [], []
  odd << x
  even << x + 1 << 2
  x.times { |i| (i.odd? ? odd << i : even << i) if x > 1; all.push(i) }
  odd, even = even, odd if x == 100
  [odd, even, all]
end
