# Structs with keyword_init are made from keywords, in any order; what is not given is nil.
#
# elements = [1, 2.5, nil]
# wrong = 0
# gives: [[false, true, [1, nil], :none, nil], [false, true, [2.5, nil], :none, nil], [false, true, [nil, nil], :none, nil]]
# checks: 8
#
# elements = [1]
# wrong = 1
# raises: ArgumentError at line 31, index 0, tick 0: unknown keywords: z, w
#
# elements = [1]
# wrong = 2
# raises: ArgumentError at line 32, index 0, tick 0: wrong number of arguments (given 1, expected 0)
#
# elements = [1]
# wrong = 3
# raises: ArgumentError at line 25, index 0, tick 0: missing keyword: :x

Point = Struct.new(:x, :class, keyword_init: true) do
  def double = Point.new(class: 1, x: x * 2)
end

class Named < Struct.new(:x, :name, keyword_init: true)
  def initialize(x:, name: :none)
    super
  end
end

elements.pmap do |e|
  Point.new(z: 1, w: 2) if wrong == 1
  Point.new(1) if wrong == 2
  Named.new(name: 1) if wrong == 3
  p = Point.new(x: e)
  q = Point.new(class: 1, x: p.x)
  named = Named.new(x: q)
  case named
  in { x: Point => inner, name: :none } then inner.x == e ? [p == q, p == Point.new(x: e), p.to_a, named.name, Point.new.x] : 0
  end
end
