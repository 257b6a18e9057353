# Columns have no room for Ranges.
#
# elements = [1..2]
# refused: kernels cannot hold a Range in an element of the array that the block runs over

elements.pmap do |range|
  range.size
end
