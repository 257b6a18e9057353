# Numbers in Strings.
#
# elements = ["12", " -34x", "", "x", "1_000", "1__2", "_1", "0d15", "0x1f", "+7", "- 1", "9223372036854775807", "-9223372036854775808", "0_8", "1_", "\t5"]
# gives: [12, -34, 0, 0, 1000, 1, 0, 15, 0, 7, 0, 9223372036854775807, -9223372036854775808, 8, 1, 5]
# checks: 3
#
# elements = ["9223372036854775808"]
# raises: Ikra::IntegerOverflow at line 11, index 0, tick 0: -@
# differs: Ruby's Integers are not 64 bits

elements.pmap { |s| s.to_i }
