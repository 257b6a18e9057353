# An array whose variable is assigned by an argument of what grows it is held by nobody but the call.
#
# elements = [0, 1]
# refused: << changes the length of an array that others may hold

elements.pmap do |x|
  list = [x]
  other = -> { list = [x + 1] }
  list << other.call.size
  list
end
