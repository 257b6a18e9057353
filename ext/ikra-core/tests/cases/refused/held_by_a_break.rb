# What a break gives instead of a new array may be held by others.
#
# elements = [0, 1]
# refused: << changes the length of an array that others may hold

elements.pmap do |x|
  list = []
  other = [1, 2].map { |y| break list if y > x; y }
  other << x
  list.size
end
