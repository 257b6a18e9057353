# What a class of its own each does, and what the block does, come in Ruby's order.
#
# elements = [1]
# gives: [[[[5, 6], 1523364, [3], 1523364, [5, 6], 1523364], [[[5, 6], [3]], 1523364, [5, 1, 3, 1, 6, 1], 1523364, [3, 6], 152334], [[5, 6], 1523364, [3, 5, 6], 1523364, [5, 3, 6], 5, 1, [5, 3], 12, [], 12], [122341, 128394, 1122394, 1523364536], [[5, 6, 18], 1122334, [0, 3, 12], 1021324, [6, 3]], [[], 1727, [5, 3, 6], [3, 6], [[5, 4], [3, 5], [6, 6]]]]]
# checks: 204

class Log
  include Enumerable
  attr_accessor :n

  def initialize(n)
    @n = n
  end

  def each
    @n = 1
    yield 5
    @n = @n * 10 + 2
    yield 3
    @n = @n * 10 + 3
    yield 6
    @n = @n * 10 + 4
    self
  end

  def add(k) = @n = @n * 10 + k
end

elements.pmap do |x|
  log = Log.new(0)
  a = [log.select { |y| log.add(y); y > 3 }, log.n, log.reject { |y| log.add(y); y > 3 }, log.n, log.filter_map { |y| log.add(y); y if y > 3 }, log.n]
  b = [log.partition { |y| log.add(y); y > 3 }, log.n, log.flat_map { |y| log.add(y); [y, x] }, log.n, log.drop_while { |y| log.add(y); y > 3 }, log.n]
  c = [log.uniq { |y| log.add(y); y % 2 }, log.n, log.sort_by { |y| log.add(y); y }, log.n, log.uniq, log.first, log.n, log.first(2), log.n, log.take(0), log.n]
  log.each_slice(2) { |y| log.add(y.size) }
  d = [log.n]
  log.each_cons(2) { |y| log.add(y.sum % 10) }
  d << log.n
  log.zip([1, 2]) { |y, z| log.add(z || 9) }
  d << log.n
  log.cycle(2) { |y| log.add(y) }
  d << log.n
  e = [log.map.with_index(x) { |y, i| log.add(i); y * i }, log.n, log.each_with_index.map { |y, i| log.add(i); y * i }, log.n, log.minmax_by { |y| -y }]
  f = [(log.select { |y| log.add(7); raise ArgumentError, "three" if y == 3; true } rescue []), log.n, log.compact, log.drop(1), log.zip(4..9)]
  [a, b, c, d, e, f]
end
