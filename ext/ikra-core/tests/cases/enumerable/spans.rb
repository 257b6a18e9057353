# Iterators of Integers without a block, whose values are counted and not listed.
#
# elements = [0, 1, 3]
# gives: [0, 1, 9]

elements.pmap do |n|
  n.times.reduce(0) { |sum, k| sum + k } + 1.upto(n).sum { |k| k }
end
