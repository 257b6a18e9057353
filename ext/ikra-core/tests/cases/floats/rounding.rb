# floor, ceil, round, truncate and to_i give Integers, or raise where there is none.
#
# elements = [0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, -2.6, 1e15]
# gives: [110, 1222, 2334, -101, -1213, 2234, -2325, 1112000000000000000]
#
# elements = [1.0, Float::NAN]
# raises: FloatDomainError at line 12, index 1, tick 0: NaN
#
# elements = [Float::INFINITY]
# raises: FloatDomainError at line 12, index 0, tick 0: Infinity

elements.pmap { |x| x.floor + x.ceil * 10 + x.round * 100 + x.to_i * 1000 + x.truncate }
