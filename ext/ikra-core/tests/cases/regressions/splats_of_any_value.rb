# `*` takes apart what has `to_a`; nil is nothing, and a number is itself.
#
# elements = [1, 2]
# gives: [[3, [1, 2, 9], [9], [nil, nil], [1, nil], [7, 8, 1]], [4, [2, 2, 9], [9], [nil, nil], [2, nil], [7, 8, 2]]]
# checks: 15

Point = Struct.new(:x, :y)

class Steps
  def initialize(first)
    @first = first
  end

  def to_a
    [@first, 8]
  end
end

elements.pmap do |n|
  point = Point.new(n, 2)
  x, y = *point
  a, b = *nil
  c, d = *n
  [x + y, [*point, 9], [*nil, 9], [a, b], [c, d], [*Steps.new(7), n]]
end
