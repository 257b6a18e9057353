# Results beyond 64 bits raise; they never wrap unless asked.
#
# elements = [1, 9223372036854775807]
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 15, index 1, tick 0: + gives an Integer beyond 64 bits
#
# elements = [9223372036854775806]
# gives: [9223372036854775807]
#
# elements = [9223372036854775807, -5]
# differs: the user asked for wrapping
# options: overflow wrap
# gives: [-9223372036854775808, -4]

elements.pmap { |x| x + 1 }
