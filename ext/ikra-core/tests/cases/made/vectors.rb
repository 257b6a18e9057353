# Objects that stay inside are made, passed on and dropped.
#
# elements = [1.0, 2.0, 3.0]
# gives: [13.0, 34.0, 69.0]

class Vec
  attr_reader :x, :y

  def initialize(x, y)
    @x = x
    @y = y
  end

  def +(other)
    Vec.new(@x + other.x, @y + other.y)
  end

  def *(other)
    Vec.new(@x * other, @y * other)
  end

  def dot(other)
    @x * other.x + @y * other.y
  end
end

elements.pmap do |x|
  v = Vec.new(x, 1.0)
  w = v
  3.times { w += v * 2.0 }
  w.dot(v) - 1.0 + (w.x - w.y) * (x - 1.0) / x * 0.0
end
