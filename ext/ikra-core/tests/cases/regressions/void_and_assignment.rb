# `&&=` and `||=` whose value nobody uses, over a local of one value.
#
# elements = [0.5, 1.5]
# last = 0
# after: last => 3

elements.peach do |x|
  v = false
  v &&= true
  w = nil
  w ||= 3
  last = w
  w ||= 4
end
