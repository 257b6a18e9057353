# What only a remainder consumes is exact, however far it leaves 64 bits in between.
#
# elements = [1, 123456789, 9223372036854775807, -9223372036854775807]
# m = 1_000_003
# gives: [223520, 777989, 108826, 541576]
#
# elements = [9223372036854775807]
# m = -7
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 16, index 0, tick 0: + gives an Integer beyond 64 bits
#
# elements = [3]
# m = 0
# raises: ZeroDivisionError at line 16, index 0, tick 0: divided by 0

elements.pmap { |x| (x * 6364136223846793005 + 1442695040888963407) % m + (3 - x * x * x) % 97 + (x * (x - 1) + (x + 5) * 7).modulo(1009) }
