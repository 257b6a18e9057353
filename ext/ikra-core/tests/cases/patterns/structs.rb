# Structs are taken apart by position and by name.
#
# a = Pair(x: 1, y: 2)
# elements = [1, 5]
# gives: [14, 110]

Pair = Struct.new(:x, :y)

elements.pmap do |n|
  sum = case a
        in [0, _] then 1
        in Pair[x, y] if x == n then x + y * 5
        in {x:, y: Integer => z} then x + z + 100
        end
  sum += 3 if a in {x: 1}
  sum += n if a in [1 | 2, 2]
  a => {y:}
  sum + y - 3
end
