# break leaves the section, with what the elements before it did.
#
# elements = [1, 2, 30, 4, 50]
# gives: 60

elements.pmap do |x|
  break x * 2 if x > 10
  x
end
