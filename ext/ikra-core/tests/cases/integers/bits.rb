# Bitwise operators and shifts, also by negative and large amounts.
#
# elements = [0, 1, -1, 255, -256, 4611686018427387904]
# gives: [0, 0, -32773, 33020, -31, 576460752303423488]

elements.pmap { |x| ((x & 0xff) | (x >> 3)) ^ ~(x >> 70) + ((x & 7) << -(x & 1)) + (1 << (x & 15)) + x[2] }
