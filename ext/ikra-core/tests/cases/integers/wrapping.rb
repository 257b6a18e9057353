# Products that only a mask or a remainder consumes do not overflow.
#
# elements = [1, 123456789, 9223372036854775807]
# gives: [1140702475, 1835269778, 2865938097]

elements.pmap { |x| ((x * 6364136223846793005 + 1442695040888963407) & 0xffffffff) + (x * 48271) % 2147483647 }
