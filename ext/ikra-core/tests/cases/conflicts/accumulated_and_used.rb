# What is only accumulated may not be used in the block.
#
# elements = [1, 2]
# sum = 0
# conflict: sum is accumulated in this block, and its value is used here

elements.peach do |x|
  sum += x
  x * sum
end
