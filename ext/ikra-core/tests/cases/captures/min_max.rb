# Least and greatest, by comparison and by method; the first of equals stays.
#
# low = 100
# high = -100.5
# elements = [3.5, -2.0, 8.25]
# after: low => -2.0
# after: high => 8.25

elements.peach do |x|
  low = x if x < low
  high = [high, x].max
end
