# A lambda that calls itself is a function, which gets the variables from around it.
#
# elements = [1, 4]
# gives: [11, 20]

elements.pmap do |x|
  k = 10
  f = ->(n) { n < 1 ? k : n + f.(n - 1) }
  f.(x)
end
