# A mask decides which bits count: no overflow check is left.
#
# elements = [1, 4611686018427387904]
# gives: [1103527590, 12345]
# shows: after:demanded_bits

elements.pmap { |x| ((x * 1_103_515_245) + 12_345) & 0x7fffffff }
