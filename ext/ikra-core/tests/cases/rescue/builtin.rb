# A rescued trap in the same body is a branch.
#
# elements = [4, 0, -3, 1]
# gives: [25, -1, -34, 100]

elements.pmap { |x| 100 / x rescue -1 }
