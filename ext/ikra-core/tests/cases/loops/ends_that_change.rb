# A Range keeps the ends that it was made of, although the block that it iterates assigns their variables.
#
# elements = [2, 4]
# gives: [[2345, 65432, 6, 14, 14, 14], [45, 654, 1, 9, 9, 9]]
# checks: 9

elements.pmap do |from|
  digits = 0
  first, last = from, 6
  (first...last).each { |i| first, last, digits = 100, 0, digits * 10 + i }
  back = 0
  first, last = from, 6
  (first..last).reverse_each { |i| first, last, back = 100, 0, back * 10 + i }
  first, last = from, 6
  places = 0
  (first...last).each_with_index { |_, place| first, places = 100, places + place }
  first, last = from, 6
  range = (first...last).each { first, last = 100, 0 }
  sum = range.sum
  first, last = from, 6
  other = 0
  for i in first...last do first, last, other = 100, 0, other + i end
  first, last = from, 6
  [digits, back, places, sum, other, (first...last).sum { |k| last = 0; k }]
end
