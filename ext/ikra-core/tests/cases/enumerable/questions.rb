# all?, any?, none?, one?, count, find, find_index, include?: with a block, a pattern, an item and nothing.
#
# list = [3, 1, 4, 1, 5]
# empty = []
# elements = [0, 1, 4, 9]
# gives: [69, 1245, 1163, 49]
# checks: 0

elements.pmap do |x|
  sum = 0
  sum += 1 if list.any? { |y| y == x }
  sum += 2 if list.all? { |y| y > x }
  sum += 4 if list.none? { |y| y > x + 2 }
  sum += 8 if list.one? { |y| y == x }
  sum += list.count(x) * 100 + list.count { |y| y > x } * 10 + list.count
  sum += list.find { |y| y > x } || 7
  sum += (list.find_index(x) || 2) + (list.index { |y| y == x } || 3) + (list.rindex(x) || 4)
  sum += 1000 if list.include?(x)
  sum += 1 if list.all?(Integer) && list.any?(1..x) && empty.all? && !empty.any?
  sum += 20 if (1..x).any? { |y| y * y == x } && (0...x).include?(3)
  sum += 3 if (1..x).find { |y| y > 3 }
  sum
end
