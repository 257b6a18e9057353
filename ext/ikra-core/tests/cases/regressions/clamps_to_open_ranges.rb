# Where one end is missing, only the other bounds.
#
# elements = [1, 5, 9]
# gives: [[1, 3, 3, 1.5, 1], [4, 5, 5, 4, 4], [4, 9, 6, 4, 4]]
# checks: 2

elements.pmap do |n|
  bounds = n > 1 ? (..4) : (..4.5)
  [n.clamp(..4), n.clamp(3..), n.clamp(3..6), n == 1 ? 1.5.clamp(..4) : n.clamp(..4), n.clamp(bounds)]
end
