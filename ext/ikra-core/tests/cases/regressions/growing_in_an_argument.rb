# An argument that shortens the receiver comes before the method looks at it.
#
# elements = [0, 1]
# refused: pop changes the length of an array while another of its methods runs

elements.pmap do |x|
  list = [x, 2, 1]
  list[list.pop + 1]
end
