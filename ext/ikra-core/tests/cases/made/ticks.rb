# Every tick makes new ones, and gives back what did not stay.
#
# elements = [Walker(at: nil, sum: 0), Walker(at: nil, sum: 5)]
# after: elements[0].at.x => 4
# after: elements[0].sum => 10
# after: elements[1].sum => 15

class Point
  attr_reader :x

  def initialize(x)
    @x = x
  end
end

class Walker
  def step
    last = @at ? @at.x : 0
    passing = Point.new(last + 1)
    @at = Point.new(passing.x)
    @sum += passing.x
  end
end

elements.peach(4) { |walker| walker.step }
