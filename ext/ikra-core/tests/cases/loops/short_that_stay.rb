# These loops stay: one whose count only finds elements, and one that is too long.
#
# cells = [1, 2, 3, 4]
# elements = [0, 1]
# gives: [210, 260]

elements.pmap do |i|
  sum = 0
  4.times { |k| sum += cells[k] * 10 }
  100.times { |k| sum += 1 if k % 2 == i || k % 2 == 0 }
  sum + 60
end
