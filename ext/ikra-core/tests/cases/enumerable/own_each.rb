# A class with its own each is Enumerable; Comparable by its own <=>.
#
# a = Bag(list: [5, 3, 9])
# elements = [1, 4]
# gives: [67, 50]
# checks: 7

class Bag
  include Enumerable

  def initialize(list)
    @list = list
  end

  def each
    i = 0
    while i < @list.size
      yield @list[i]
      i += 1
    end
    self
  end
end

elements.pmap do |x|
  sum = a.sum + a.inject { |p, q| p * q } % 7 + a.max + a.min_by { |y| (y - x).abs }
  sum += a.count { |y| y > x } + (a.find { |y| y > 4 } || 0) + (a.include?(9) ? 10 : 0)
  a.each_with_index { |y, i| sum += y * i if i > x }
  sum
end
