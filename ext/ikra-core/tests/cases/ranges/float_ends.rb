# Ranges from an Integer to a Float go over the Integers up to it; one to Infinity has no end.
#
# elements = [1, 3, -2]
# gives: [[1, 6, [1, 2, 3], [1, 2], 1, [2], 0], [66, 6, [3, 6, 9], [1, 2], 6, [2], 0], [0, 6, [-2, -4, -6], [1, 2], 0, [2], 0]]
# checks: 16

elements.pmap do |x|
  limit = x > 1 ? x + 0.5 : x
  total = 0
  (0..limit).each { |i| total += i }
  (0...limit).each { |i| total += i * 10 }
  found = nil
  (x..Float::INFINITY).each do |i|
    if i * i > 30
      found = i
      break
    end
  end
  [total, found, (1..3.5).map { |i| i * x }, (1...3.0).to_a, (1..x + 0.25).sum, (1..2.5).select { |i| i > 1 }, (4..-0.5).count { true }]
end
