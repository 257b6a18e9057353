# Arithmetic of which only low bits are asked for is exact where it may be rescued, too.
#
# elements = [1, 2, 1234567890123, 9223372036854775807, -9223372036854775808, -5]
# gives: [50907551, 479632348, 133036047, 257211727, 104152800, 178225708]

def hash(x)
  z = (x + 0x9e3779b97f4a7c15) & 0xffffffffffffffff
  z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & 0xffffffffffffffff
  z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & 0xffffffffffffffff
  (z ^ (z >> 31)) & 0x3fffffff
end

elements.pmap do |x|
  a = begin
    hash(x) / (x == 2 ? 0 : 3)
  rescue ZeroDivisionError
    hash(x)
  rescue RangeError
    :too_large
  end
  b = begin
    y = (x * 1_103_515_245 + 12_345) & 0x7fffffff
    (y * x + 17) % 1_000_003
  rescue RangeError
    :beyond
  end
  b.is_a?(Symbol) || a.is_a?(Symbol) ? b : a ^ b
end
