# A value carried from element to element needs their order.
#
# previous = 0
# elements = [1, 2, 3]
# conflict: previous

elements.pmap do |x|
  difference = x - previous
  previous = x
  difference
end
