# `&&` and `||` as statements, over operands of one value.
#
# last = 0
# elements = [1]
# after: last => 1

elements.peach do |x|
  false && 1.5
  nil || x
  last = x
  (x && false)
end
