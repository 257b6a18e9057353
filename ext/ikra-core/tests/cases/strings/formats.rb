# Numbers and Strings by a literal format.
#
# elements = [1, -20, 300]
# gives: ["1|  1.50|0x01", "-20| -9.00|0x02", "300|151.00|0x03"]
# checks: 63

elements.pmap { |x| format("%d|%6.2f|0x%02x", x, x * 0.5 + 1, x % 11) }
