# An array indexed by a Range that is known as an object only, or that may be an Integer instead.
#
# c = 2.5
# elements = [0, 1, 2]
# gives: [[[3, 4], [2, 3], 1, []], [[3, 4], [2, 3], [2, 3, 4], []], [[3, 4], [2, 3], 3, []]]
# checks: 18

elements.pmap do |x|
  list = [1, 2, 3, 4]
  from = [x * 0 + 2, c].first
  pick = x == 1 ? (x..-1) : x
  [list[(x > 5 ? x : c)..-1], list[(from - 1)..(x > 7 ? nil : 2)], list[pick], [][(from % 3 - 2)..x] || []]
end
