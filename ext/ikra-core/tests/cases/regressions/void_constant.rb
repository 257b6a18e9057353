# A constant that nobody looks at in one call, and somebody in another.
#
# elements = [1, 2]
# gives: [2.5, 1]

LIMIT = 2.5

def limit(x)
  x + 1
  LIMIT
end

elements.pmap do |x|
  if x == 1
    limit(0)
    next limit(x)
  end
  limit(3)
  1
end
