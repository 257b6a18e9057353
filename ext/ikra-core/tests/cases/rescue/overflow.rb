# An Integer beyond 64 bits is a RangeError, which plain Ruby does not raise; in the body or in a method.
#
# elements = [1, 4611686018427387904, -9223372036854775808, 9223372036854775807, -4611686018427387904, -4611686018427387905]
# gives: [220, 9, 198, 9, 219, 219]
# differs: Ruby's Integers have no bounds

def doubled(x)
  x * 2
end

elements.pmap do |x|
  a = begin
    x + 9223372036854775806 - 9223372036854775806
    200
  rescue RangeError
    -10
  end
  b = begin
    x - 1 + 0
    20
  rescue RangeError
    -1
  end
  c = begin
    doubled(x)
    0
  rescue StandardError
    -a
  end
  d = begin
    x * 3
    0
  rescue ArgumentError
    1
  rescue Ikra::IntegerOverflow
    -1
  end
  a + b + c * 0 + d
end
