# Locals of a method that takes a block are no captured variables of the section.
#
# product = 7
# mask = (-1)
# elements = [1, 2]
# after: product => 7
# after: mask => -1
#
# product = 7
# mask = (-1)
# elements = [1, 9, 10]
# after: product => 21
# after: mask => 5

elements.peach do |x|
  product *= 3 if x == 9
  mask &= 5 if x == 10
  v = [1].any? { |y| y.nil? }
end
