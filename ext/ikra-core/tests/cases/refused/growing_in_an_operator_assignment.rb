# The value of an operator assignment to an element takes an element away.
#
# elements = [1, 2]
# refused: while another of its methods runs

elements.pmap do |x|
  list = [x, 8]
  list[1] += list.pop
  list.size
end
