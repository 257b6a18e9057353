# Curried Procs and Method objects keep values in registers of the function that makes them.
#
# elements = [1, 2]
# gives: [12, 21]

elements.pmap do |x|
  add = ->(a, b) { a + b }
  more = add.curry[x]
  times = x.method(:*)
  more.(2) + (more >> times).(3) + [1, 2].sum(&more)
end
