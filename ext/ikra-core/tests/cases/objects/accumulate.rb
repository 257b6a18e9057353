# Adding to an ivar of an object that all elements share keeps every contribution.
#
# total = Total(sum: 100, count: 0)
# elements = [1, 2, 3, 4]
# after: total.sum => 110
# after: total.count => 4

class Total
  attr_accessor :sum, :count
end

elements.peach do |x|
  total.sum += x
  total.count += 1
end
