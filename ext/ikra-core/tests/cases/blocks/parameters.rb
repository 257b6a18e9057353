# Destructured, optional and numbered parameters of inner blocks.
#
# elements = [1, 2]
# gives: [5, 11]

elements.pmap do
  sum = 0
  _1.times { |i, unused = 5| sum += i + unused }
  sum
end
