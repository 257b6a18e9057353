# Slots that many elements add to keep every contribution; of Floats in any order.
#
# counts = [0, 10]
# weights = [0.0, 0.5]
# elements = [1, 2, 3, 4, 5]
# after: counts => [2, 13]
# after: weights => [6.0, 9.5]

elements.peach do |x|
  counts[x % 2] += 1
  weights[x % 2] += x
end
