# An Integer beyond 64 bits leaves the section, whatever rescues it, in the body or in a method: Ruby raises nothing there.
#
# elements = [1, -4611686018427387904, 4611686018427387903]
# gives: [3, -9223372036854775807, 9223372036854775807]
#
# elements = [0, 4611686018427387904]
# raises: Ikra::IntegerOverflow at line 16, index 1, tick 0: * gives an Integer beyond 64 bits
# differs: Ruby's Integers have no bounds
#
# elements = [2, -1]
# raises: Ikra::IntegerOverflow at line 32, index 1, tick 0: + gives an Integer beyond 64 bits
# differs: Ruby's Integers have no bounds

def doubled(x)
  y = 0
  y = x * 2
ensure
  return 1 if y == 0 && x != 0
end

elements.pmap do |x|
  tries = 0
  a = begin
    tries += 1
    doubled(x)
    x * 2
  rescue StandardError
    retry if tries < 3
    -1
  end
  b = begin
    x == -1 ? 9223372036854775807 + tries : 1
  rescue RangeError, Exception
    2
  ensure
    tries = 5
  end
  a + b
end
