# Growing an array that its own elements hold, or that a method of the program's own gave back, is refused.
#
# elements = [0, 1]
# refused: << changes the length of an array that others may hold

elements.pmap do |x|
  list = []
  list << list
  list << list
  list[0].size
end
