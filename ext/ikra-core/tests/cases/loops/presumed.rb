# Integers of which some leave 32 bits, and Floats whose roots and quotients are out of the ordinary: what loops presume on GPUs does not always hold.
#
# numbers = [3, -2, 2147483648, -5, 1000000000]
# parts = [3.0, -2.5, 0.0, 1e100, 0.5]
# elements = [1, 1099511627776, 7]
# gives: [[5611686018427387941, 0.4166666666666666], [5611684918915760166, 1.000000000005457], [5611686018427387935, 1.9222222222222223]]

elements.pmap do |x|
  squares = 0
  numbers.each { |number| squares += number * number }
  ratios = 0.0
  parts.each { |part| ratios += Math.sqrt(part * part) / (part + x) }
  [squares - x, ratios]
end
