# An array that changes under one name and is read under another is no registers. Neither is one with an unknown index.
#
# elements = [1, 2, 3]
# gives: [79, 75, 97]

elements.pmap do |i|
  now = [i, 1]
  before = [0, 0]
  2.times do
    before = now if i != 2
    now = [now[1], now[0] + now[1]]
  end
  other = i > 0 ? before : now
  other[0] = 50
  before[0] + now[i % 2] * 10 - now[1 - i % 2] * 1 + (i == 2 ? -1 : 1)
end
