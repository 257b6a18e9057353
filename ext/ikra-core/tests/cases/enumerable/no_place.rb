# A place that is NaN is out of range, in the words of Ruby's C.
#
# list = [1, 2]
# elements = [0.5, Float::NAN]
# raises: RangeError at line 7, index 1, tick 0: float NaN out of range of integer

elements.pmap { |x| list.first(x).size }
