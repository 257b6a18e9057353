# A masked number whose highest bit is set and counts is beyond the Integers of kernels.
#
# elements = [5, 9223372036854775807]
# gives: [5, 9223372036854775807]
#
# elements = [5, -1]
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 15, index 1, tick 0: & gives an Integer beyond 64 bits
#
# elements = [5, -1]
# differs: the user asked for wrapping
# options: overflow wrap
# gives: [5, -1]

elements.pmap { |x| x & 0xffff_ffff_ffff_ffff }
