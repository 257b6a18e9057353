# An array that the program writes is no constant of the program.
#
# elements = [0]
# gives: [7]

COUNTS = [1, 2]

elements.pmap do |i|
  COUNTS[i] = 5
  2.times.sum { |k| COUNTS[k] }
end
