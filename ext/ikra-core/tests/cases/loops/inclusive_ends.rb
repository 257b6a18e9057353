# Loops to a last number test once whether they go on, unless no Integer may follow the last one.
#
# values = [1, 2, 3, 4, 5, 6]
# by = 2
# elements = [0, 1, 9]
# gives: [[21, 9223372036854775807], [25, 9223372036854775807], [45, 9223372036854775807]]
# shows: after:inclusive_ends

elements.pmap do |i|
  sum = 0
  i.step(values.size - 1, by) { |k| sum += values[k] }
  0.upto(i) { |k| sum += k }
  (i..3).each { |k| sum += k }
  3.downto(i) { |k| sum += k }
  last = 0
  9223372036854775805.upto(9223372036854775807) { |k| last = k }
  [sum, last]
end
