# case … in with values, ranges, classes, alternatives, pins, arrays, guards and bindings; in and => alone.
#
# pairs = [[0, 1], [1, 1], [7, 7], [3]]
# other = [1, 2, 3, 4]
# elements = [0, 1, 7, 2.5, nil, :a]
# gives: [18, 17, 1219, 1408, 5010, 608]
# checks: 9

elements.pmap do |x|
  pinned = 7
  sum = case x
        in 0 then 10
        in Integer => n if n < 5 then 20 + n
        in ^pinned | 8 then 1100
        in Float | nil unless x.nil? then 1400
        in Integer then 3
        in nil then 5000
        in _ then 600
        end
  sum += case [x, pinned]
         in [0, _] then 1
         in [Integer => a, Integer => b] if a == b then a + b - 1
         in [nil, *] then 2
         in [*, 7] then 0
         end
  sum += case pairs[x.is_a?(Integer) ? x % 4 : 2]
         in [0, a] then a
         in [a, b] then a + b - 12
         in [a] then 100
         end
  other => [first, *, last]
  sum += first + last
  sum += 1 if other in [1, 2, *]
  sum
end
