# Comparisons of Integers with Integers and Floats are exact.
#
# limit = 9007199254740993
# elements = [9007199254740992, 9007199254740993, 9007199254740992.0, -1, 9.1e15, Float::INFINITY, Float::NAN]
# gives: [10011, 10110, 10011, 10011, 1000, 1000, 0]

elements.pmap do |x|
  (x < limit ? 1 : 0) + (x <= limit ? 10 : 0) + (x == limit ? 100 : 0) + (x > limit ? 1000 : 0) + (limit >= x ? 10000 : 0)
end
