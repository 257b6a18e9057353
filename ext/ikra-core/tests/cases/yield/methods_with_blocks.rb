# Methods that yield: values of blocks, return out of the method, next, break and assigned variables.
#
# elements = [0, 1, 7]
# gives: [1, 4, 241]

module Twice
  def self.twice(x)
    a = yield x
    b = yield x + 1
    a + b
  end

  def self.upto(n)
    i = 0
    while i < n
      r = yield i, n
      return r if r

      i += 1
    end
    -1
  end
end

elements.pmap do |x|
  sum = 0
  sum += Twice.twice(x) { |y| y * y }
  sum += Twice.upto(x) { |i, n|
    sum += 1
    next if i < 2
    i * n if i == 4
  } if x > 0
  sum += Twice.upto(9) { |i| break 100 if i > x && x > 5 } if x > 5
  sum
end
