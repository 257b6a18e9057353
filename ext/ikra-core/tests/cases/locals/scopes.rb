# A variable of an inner block is new at each of its calls; one from outside is shared.
#
# elements = [1, 2]
# gives: [204, 207]

elements.pmap do |x|
  total = 0
  3.times do |i|
    seen = 1 if i == 0
    total += seen.nil? ? 100 : 1
    total += x
  end
  3.times { |x; total| total = x }
  total
end
