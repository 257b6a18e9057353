# Structs made in kernels: arithmetic on values, members that are left out, classes below, initialize with super.
#
# elements = [Vector(x: 1.0, y: 2.0), Vector(x: -3.5, y: 0.0), Vector(x: 0.5, y: nil)]
# gives: [[6.0, 4.0, 2.0, 0, nil, 3.0, 8, 1.0, 3], [-21.0, 0.0, -7.0, 0, nil, -10.5, 8, -3.5, 3], [0.5, 100, 1.0, 0, nil, 1.5, 8, 0.5, 3]]
# checks: 33

Vector = Struct.new(:x, :y) do
  def self.zero = new(0, 0)

  def +(other) = Vector.new(x + other.x, y + other.y)
  def *(factor) = Vector.new(x * factor, y * factor)
end

class Box < Vector
  attr_reader :depth

  def initialize(side)
    super(side, side)
    @depth = side * 2
  end
end

elements.pmap do |v|
  sum = v.y ? [v, v * 2.0, v * 3.0].inject(Vector.zero) { |a, b| a + b } : Vector.new(v.x, 100)
  sum = v + v * 3 + Vector.new(v.x * 2, v.y * -2) if v.y && v.y > 1
  half = Vector.new(v.x)
  half.x += half.x
  box = Box.new(v.x * 3)
  [sum.x, sum.y, half.x, Vector.zero.y, half.y, box.y, Box.new(4).depth, v.x, [Vector.new(1, 2), Vector.zero].sum(Vector.zero).then { |s| s.x + s.y }]
end
