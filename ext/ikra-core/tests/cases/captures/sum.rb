# Captured variables that only accumulate are reduced.
#
# sum = 10
# largest = 0
# count = 0
# elements = [3, 1, 4, 1, 5]
# after: sum => 24
# after: largest => 5
# after: count => 4

elements.peach do |x|
  sum += x
  largest = x if x > largest
  count += 1 if x.odd?
end
