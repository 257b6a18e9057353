# What goes over an array would not see what its block appends.
#
# elements = [0, 1]
# refused: << changes the length of an array while another of its methods runs

elements.pmap do |x|
  list = [x, 2]
  list.map { |y| list << y if list.size < 4 }
  list.size
end
