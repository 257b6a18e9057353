# Division and remainder round towards minus infinity, and the divisor may be 0.
#
# divisor = 3
# elements = [7, -7, 0, 9223372036854775807, -9223372036854775808]
# gives: [1, -5, 0, 3074457345618258601, -3074457345618258604]
#
# divisor = -3
# elements = [7, -7, 0, 9223372036854775807]
# gives: [-1, 3, 0, -3074457345618258601]
#
# divisor = 0
# elements = [1, 2]
# raises: ZeroDivisionError at line 15, index 0, tick 0: divided by 0

elements.pmap { |x| x / divisor - x % divisor }
