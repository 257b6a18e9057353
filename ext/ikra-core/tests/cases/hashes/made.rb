# A Hash that the block makes: few keys are looked at one by one, more have an index.
#
# elements = [3, 40]
# gives: [[3, 2], [9, 36]]
# checks: 11

elements.pmap do |n|
  last = {}
  n.times { |i| last[i * i % 17] = i }
  [last.size, last[4]]
end
