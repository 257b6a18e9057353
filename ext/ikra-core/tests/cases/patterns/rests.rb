# Splats with names in array patterns, and find patterns.
#
# elements = [0, 1, 2, 3]
# gives: [[[1, 2], [0, 5], [2, 2.5, [3, 0.5]], false], [[1], [5, 6], [9], true], [[1], [2, 5], :b, false], [[3], [3, 5], :empty, false]]
# checks: 53

class Point < Struct.new(:x, :y, :z); end

def found(list)
  case list
  in [*, Integer => a, Float => b, *post] then [a, b, post]
  in [*before, :x, *] if before.size < 3 then before
  in [*, [2, s], *] then s
  in [] then :empty
  in [first, *] then first
  end
end

elements.pmap do |x|
  a = case [x, 1, 2]
      in [0, *rest] then rest
      in [*rest, 1, 2] if x == 1 then rest
      in [2, *rest, 2] then rest
      in [first, second, third, *rest] then rest + [first]
      end
  b = case Point.new(x, 5, 6)
      in Point[1, *rest] then rest
      in [*rest, 6] then rest
      end
  lists = [[1, 2, 2.5, 3, 0.5], [9, :x, :x], [:a, :a, :a, :x, [2, :b]], []]
  c = found(lists[x])
  d = ([x, 2, 3] in [*, 1, 2, *])
  [a, b, c, d]
end
