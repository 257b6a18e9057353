# Arrays that are made: read, written, nested, empty.
#
# elements = [1, 2, 3]
# gives: [[1, 1.0, nil, [2]], [2, 4.0, :even, [4]], [3, 9.0, nil, [6]]]

elements.pmap do |x|
  squares = [x * x, 0, x]
  squares[1] = squares[0] + squares[2]
  none = []
  nested = [[x, x], [x * 2]]
  [x, squares[0].to_f, x == 2 ? :even : nil, nested[none.size + 1]]
end
