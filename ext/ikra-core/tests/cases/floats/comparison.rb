# Comparison with NaN is false, and `<=>` with it nil.
#
# elements = [1.0, Float::NAN]
# gives: [10, 10120]

elements.pmap { |x| (x < 2 ? 10 : 20) + (x != x ? 100 : 0) + (x >= 2 ? 1000 : 0) + ((x <=> 2.0).nil? ? 10000 : 0) }
