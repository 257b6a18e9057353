# A Hash is walked through in the order in which it was made.
#
# table = { a: 1, b: 2.5, c: 4 }
# elements = [1, 10]
# gives: [231029.0, 231096.5]
# checks: 10
#
# table = {}
# elements = [1, 10]
# gives: [40000, 40000]

elements.pmap do |x|
  sum = 0
  table.each { |key, value| sum = sum * 3 + value * (key == :b ? x : 1) }
  table.each_pair { |_, value| break if value > 2; sum += 1000 }
  table.each_key { |key| sum += 1 if key == :c }
  table.each_value { |value| sum += value }
  sum += 10_000 if table.any? { |key, value| key == :a && value == 1 }
  sum += 20_000 if table.any?
  sum += 40_000 if table.all? { |_, value| value > x }
  sum += table.count { |_, value| value > 1 } * 100_000
  sum += 5_000_000 if table.value?(4) && table.empty?
  sum
end
