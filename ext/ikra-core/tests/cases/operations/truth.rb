# An operation asks for truth; the block's locals, next and its parameters are as in any block.
#
# elements = [1, -2, 0, 3]
# limit = 1
# sum = 0
# gives: [true, false, false, true]
# after: sum => 4

elements.pmap_within(:truth) do |x|
  next false if x == 0
  square = x * x if x > 0
  sum += x if x > 0
  square && square >= limit ? square : nil
end
