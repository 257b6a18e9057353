# Frozen objects are read, not written.
#
# elements = [Point(x: 1), Point(x: 2).freeze]
# raises: FrozenError at line 11, index 1, tick 0: can't modify frozen Point: #<Point>
#
# elements = [Point(x: 1), Point(x: -2).freeze]
# gives: [2, -2]

class Point
  def shift
    @x += 1 if @x > 0
    @x
  end
end

elements.pmap { |p| p.shift }
