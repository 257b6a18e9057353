# Arrays are compared element by element.
#
# other = [1, 2.0, [3, nil]]
# elements = [[1, 2, [3, nil]], [1, 2.0, [3, nil]], other, [1, 2, [3]], [], [1, 2, [3, 4]], [[1], 2]]
# gives: [210001, 210101, 211101, 100010, 100010, 10, 10]
# checks: 0
#
# other = [1, 2, 3]
# elements = [[1, 2, 3], [1, 2, 4], [1, 2], [1, 2, 3, 0], [0, 9, 9], [], [1, 1.5], [1, nil], [1.0, 2.0, 3.0]]
# gives: [210101, 300010, 100010, 300010, 100010, 100010, 100010, 10, 210001]
#
# other = [[1, 2], [3]]
# elements = [[[1, 2], [3]], [[1, 2], [4]], [[1, 2]], [[1], [9, 9, 9]], [], [[1, 2], [3], []]]
# gives: [210101, 300010, 100010, 100010, 100010, 300010]
#
# other = []
# elements = [[], [nil]]
# gives: [210101, 300010]

elements.pmap do |a|
  order = a <=> other
  bits = 0
  bits += 1 if a == other
  bits += 10 if a != other
  bits += 100 if a.eql?(other)
  bits += 1000 if a.equal?(other)
  bits += 10_000 if a === other
  bits += (order + 2) * 100_000 if order
  bits
end
