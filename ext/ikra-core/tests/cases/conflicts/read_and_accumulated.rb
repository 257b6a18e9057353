# What all elements add to is not read in between.
#
# total = Total(sum: 0)
# elements = [3, 1, 2]
# conflict: sum

class Total
  attr_accessor :sum
end

elements.pmap do |x|
  total.sum += x
  total.sum
end
