# Members are read by name, by literal Symbol and by Integer; ivars of the same object still work.
#
# origin = Point(x: 0, y: 3)
#
# i = 1
# elements = [Point(x: 1, y: 2.5), Named(x: 7, y: 8, label: :a), Pixel(x: 3, y: 4, color: 9)]
# gives: [1010.0, 7099, 3031]
# checks: 15
#
# i = -1
# elements = [Point(x: 1, y: 2.5), Named(x: 7, y: 8, label: :a), Pixel(x: 3, y: 4, color: 9)]
# gives: [1010.0, 7099, 3051]
#
# i = 2
# elements = [Pixel(x: 3, y: 4, color: 9), Point(x: 1, y: 2.5)]
# raises: IndexError at line 42, index 1, tick 0: offset 2 too large for struct(size:2)
#
# i = -3
# elements = [Point(x: 1, y: 2.5)]
# raises: IndexError at line 42, index 0, tick 0: offset -3 too small for struct(size:2)
#
# i = nil
# elements = [Point(x: 1, y: 2.5)]
# raises: TypeError at line 42, index 0, tick 0: no implicit conversion from nil to integer

Point = Struct.new(:x, :y) do
  def weigh(other) = x * 1000 + y * 2 + other.x - other[:y] + self[0] - self[-2] * 3
end

class Named < Point
  attr_reader :label

  def weigh(other) = super + (@label == :a ? 68 : 0)
end

class Pixel < Struct.new(:x, :y, :color)
  def x = super * 1000

  def weigh(other) = self.x + size + self[-1] + length
end

elements.pmap { |p| p.weigh(origin) + p[i] * 4 }
