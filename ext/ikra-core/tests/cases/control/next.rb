# next leaves the block with a value, from anywhere in it.
#
# elements = [1, 2, 3, 4]
# gives: [10, 0, 30, nil]

elements.pmap do |x|
  next 0 if x == 2
  3.times { |i| next if i == 1 }
  next if x == 4
  x * 10
end
