# The element that leaves the section has contributed what it had until then, and so have the others in the ticks before.
#
# elements = [1, 2, 3]
# at = 2
# sum = 0
# last = 0
# gives: 7
# after: sum => 15
# after: last => 22
#
# elements = [1, 2, 3]
# at = 0
# sum = 0
# last = 0
# gives: 7
# after: sum => 3
# after: last => 2

elements.peach(4) do |x|
  sum += x
  last = Ikra.tick * 10 + x
  break 7 if Ikra.tick == at && x == 2
end
