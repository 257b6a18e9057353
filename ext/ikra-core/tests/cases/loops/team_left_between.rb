# Code behind a loop reads what it has counted. How far that is depends on which exit it takes.
#
# ends = [2, 3, 9]
# size = 5
# values = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
# gives: [2, 3, 5]
# after: values => [2.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]
# shows: team

(0...3).pmap do |line|
  at = 0
  last = ends[line]
  while true
    values[line * size + at] = 2.0
    break if at >= last
    at += 1
    break if at >= size
  end
  at
end
