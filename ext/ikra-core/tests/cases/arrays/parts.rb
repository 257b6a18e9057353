# A part of an array gets another length, in the variable that alone holds it.
#
# elements = [1, 2]
# gives: [[1, 1, 8, 9], [2, 9]]
# checks: 5

elements.pmap do |x|
  list = [7, 8, 9]
  list[0, x] = x == 1 ? [1, 1] : [2]
  list
end
