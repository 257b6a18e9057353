# == and eql? of Structs go member by member, between objects of one class; != and === follow.
#
# same = Point(x: 1, y: 2)
# elements = [Point(x: 1, y: 2), Point(x: 1.0, y: 2), Point(x: 1, y: 3), same, Other(x: 1, y: 2), nil, 1, Low(x: 1, y: 2), Point(x: 1, y: nil), Point(x: Point(x: 5, y: 6), y: [1, 2])]
# gives: [1101101, 1100101, 10, 1111101, 10, 10, 10, 10, 10, 10]
# checks: 200
#
# same = Point(x: Point(x: 5, y: 6), y: [1, 2.0])
# elements = [Point(x: Point(x: 5, y: 6), y: [1, 2]), Point(x: Point(x: 5, y: 7), y: [1, 2]), Point(x: Point(x: 5, y: 6), y: [1, 2, 3]), Point(x: Point(x: 5, y: 6), y: [])]
# gives: [1100101, 10, 10, 10]
#
# same = Point(x: Cell(n: 1), y: :a)
# elements = [Point(x: Cell(n: 1), y: :a), Point(x: Cell(n: 2), y: :a), Point(x: Cell(n: 1), y: :b)]
# gives: [1100101, 10, 10]

Point = Struct.new(:x, :y)
Other = Struct.new(:x, :y)

class Low < Point
end

class Cell
  attr_reader :n

  def ==(other) = other.is_a?(Cell) && n == other.n
end

elements.pmap do |p|
  bits = 0
  bits += 1 if p == same
  bits += 10 if p != same
  bits += 100 if same == p
  bits += 1000 if p.eql?(same)
  bits += 10_000 if p.equal?(same)
  case p
  when same then bits += 100_000
  end
  bits += 1_000_000 if p === same
  bits
end
