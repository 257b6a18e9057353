# The greatest of two Floats: NaN cannot be compared.
#
# elements = [1.5, 2.5]
# raises: ArgumentError at line 6, index 1, tick 0: comparison of Float with 1.0 failed

elements.pmap { |x| [1.0, x > 2.0 ? Float::NAN : x].max }
