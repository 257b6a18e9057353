# A frozen Struct is read; a write to it raises what Ruby raises.
#
# elements = [Point(x: 1, y: 2).freeze, Point(x: 3, y: 4)]
# limit = 0
# gives: [3, 7]
#
# elements = [Point(x: 1, y: 2).freeze, Point(x: 3, y: 4)]
# limit = 2
# gives: [3, 10]
#
# elements = [Point(x: 1, y: 2).freeze, Point(x: 3, y: 4)]
# limit = 9
# raises: FrozenError at line 19, index 0, tick 0: can't modify frozen Point: #<struct Point x=1, y=2>

Point = Struct.new(:x, :y, keyword_init: true)

elements.pmap do |p|
  p.y = 7 if p.x > 2 && limit > 1
  p[:x] = 5 if p.x == 1 && limit > 5
  p.x + p.y
end
