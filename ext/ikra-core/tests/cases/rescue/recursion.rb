# An exception climbs out of a recursion, through ensures.
#
# elements = [0, 1, 5, 9]
# count = [0, 0, 0, 0]
# gives: [0, 10, 50, -7]

class Bottom < StandardError; end

def descend(n, depth)
  raise Bottom, "at #{depth}" if n == 0
  if n.odd?
    1 + descend(n - 1, depth + 1)
  else
    begin
      2 + descend(n - 1, depth + 1)
    ensure
      raise TypeError if n == 8
    end
  end
end

def guarded(n)
  n > 6 ? descend(n, 0) : [descend(n, 0), 1].max
rescue Bottom
  n * 10
end

elements.pmap do |x|
  guarded(x)
rescue TypeError
  -7
end
