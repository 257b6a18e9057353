# Steps of Floats count their steps instead of adding them up.
#
# elements = [0.0, 1.0]
# gives: [23.0, 13.0]

elements.pmap do |x|
  count = 0
  last = 0.0
  x.step(2.0, 0.1) { |y| count += 1; last = y }
  count + last
end
