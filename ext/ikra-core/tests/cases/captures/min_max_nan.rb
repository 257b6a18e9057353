# What comes after a NaN counts, within an element and after it.
#
# low = 9.0
# high = -9.0
# elements = [2.0, 3.0]
# after: low => -3.0
# after: high => 3.0

elements.peach do |x|
  [0.0 / (x - x), x, 0.0 / (x - x), -x].each do |y|
    low = y if y < low
    high = y if high < y
  end
end
