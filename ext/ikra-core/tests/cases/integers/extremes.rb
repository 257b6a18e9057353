# The least and the greatest Integers.
#
# elements = [9223372036854775807, -9223372036854775808]
# gives: [1537228672809129303, -1537228672809129299]

elements.pmap { |x| (x / 2) + (x % 7) + (x >> 62) + (x & 1) + (x <=> 0) + ~x / 3 }
