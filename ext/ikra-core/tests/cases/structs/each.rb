# The members of a Struct one after the other, and what Enumerable makes of that.
#
# elements = [Point(x: 1, y: 2.5, z: 3), Point(x: 4, y: 2, z: 0), Point(x: nil, y: 7, z: 3)]
# gives: [265.0, 1850, 1153.25]
# checks: 8
#
# elements = []
# gives: []

Point = Struct.new(:x, :y, :z)

elements.pmap do |p|
  n = 0
  p.each { |v| n = n * 10 + (v || 5) }
  p.each { |v| break if v == 2 }
  n * 2 + (p.any?(&:nil?) ? 0.25 : p.sum) + (p.include?(4) ? 1000 : 0) + (p.find { |v| v && v > 2 } || 0)
end
