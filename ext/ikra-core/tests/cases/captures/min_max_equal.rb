# Of equals the first of the list stays.
#
# old = 3
# new = 3
# zero = 0.0
# elements = [3.0, 2.0]
# after: old => 3
# after: new => 3.0
# after: zero => -0.0

elements.peach do |x|
  old = [old, x].max
  new = [x, new].max
  [0.0, -0.0].each { |y| zero = [y * x, zero].min }
end
