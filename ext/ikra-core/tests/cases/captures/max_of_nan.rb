# A NaN in a list cannot be compared.
#
# most = 1.0
# elements = [1.5, 2.5]
# raises: ArgumentError at line 7, index 1, tick 0: comparison of Float with NaN failed

elements.peach { |x| most = [x > 2.0 ? 0.0 / (x - x) : x, most].max }
