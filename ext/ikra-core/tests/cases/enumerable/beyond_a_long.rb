# A place that is a Float beyond 64 bits is out of range, in the words of Ruby's C.
#
# list = [1, 2]
# elements = [0.5, -1.0e+300, 2.0]
# raises: RangeError at line 7, index 1, tick 0: float -1e+300 out of range of integer

elements.pmap { |x| list[x] }
