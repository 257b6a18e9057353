# Members are written by name and by index, with operators too, and come back.
#
# a = Point(x: 1, y: 2)
# b = Point(x: 1.5, y: nil)
# c = Named(x: 3, y: 4, label: 5)
# elements = [a, b, c]
# gives: [Point#1, Point#2, Named#1]
# after: a.x => 3
# after: a.y => 7
# after: b.x => 4.0
# after: b.y => 15
# after: c.x => 7
# after: c.y => 9
# after: c.label => 9

Point = Struct.new(:x, :y) do
  def grow
    self.x += 1
    self[:x] *= 2
    self[0] -= 1
    i = 1
    self[i] = (self[i] || 10) + 5
    self[-1] ||= 3
    @label = 9 if @label
    self
  end
end

class Named < Point
  attr_reader :label
end

elements.pmap { |p| p.grow }
