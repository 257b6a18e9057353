# inject, reduce, sum, min, max, min_by, max_by, minimum of nothing.
#
# ints = [3, 1, 4, 1, 5]
# floats = [0.1, 0.2, 0.3, 1e100, -1e100]
# mixed = [1, 0.1, 2, 0.2, 0.3]
# none = []
# elements = [1, 2]
# gives: [178.4, 204.0]
# checks: 28

elements.pmap do |x|
  sum = 0.0
  sum += ints.inject { |a, b| a + b * x }
  sum += ints.inject(:+) + ints.reduce(10, :-) + ints.inject(x) { |a, b| a * b % 7 }
  sum += ints.sum + ints.sum { |y| y * x } + floats.sum + floats.sum { |y| y * x } + mixed.sum + none.sum
  sum += ints.min + ints.max + ints.min { |a, b| b <=> a } + floats.min.abs / 1e100 + mixed.max
  sum += ints.min_by { |y| (y - x).abs } + ints.max_by { |y| -y }
  sum += (1..x).sum { |i| i * 0.5 } + (1..4).inject(:*) + (1..4).reduce(1) { |a, b| a + b } + (1..4).sum
  sum += 1 if none.max.nil? && none.inject(:+).nil?
  sum += (1..3).min { |a, b| b <=> a }
  ints.each_with_index { |y, i| sum += y * i }
  (2..3).each_entry { |y| sum += y }
  sum += floats.sum(0.0) + ints.sum(0.5)
  sum
end
