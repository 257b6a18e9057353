# Several classes are made, and found again by their class; self.class.new and allocate.
#
# elements = [Square(side: 2), Circle(radius: 3), Square(side: 4)]
# gives: [36, 108, 25]
# after: elements[0].twin.side => 3
# after: elements[1].twin.radius => 6

class Shape
  attr_reader :twin

  def grown
    @twin = bigger
  end
end

class Square < Shape
  attr_accessor :side

  def initialize(side)
    @side = side
  end

  def size = @side

  def bigger = self.class.new(@side + 1)

  def area = @side * @side
end

class Circle < Shape
  attr_accessor :radius

  def initialize(radius)
    @radius = radius
  end

  def size = @radius

  def bigger
    other = Circle.allocate
    other.radius = @radius * 2
    other
  end

  def area = @radius * @radius * 3
end

elements.pmap do |shape|
  shape.grown
  other = shape.size > 2 ? shape.twin : Square.new(shape.twin.size * 2)
  other.area
end
