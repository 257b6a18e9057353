# The value of an assignment to an element takes the element away.
#
# elements = [1, 2]
# refused: while another of its methods runs

elements.pmap do |x|
  list = [x]
  list[0] = list.pop
  list.size
end
