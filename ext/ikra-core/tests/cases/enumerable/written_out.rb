# Questions to an array that is written out: numbers of both kinds, Strings, NaN, and classes with an == of their own.
#
# elements = [0, 2, -7]
# nan = 2.5
# gives: [[2.5, 1, 1.0, 0, 2.5, "b", true, 2.5], [2.5, 1, 1.0, 2, 4.5, "b", false, 2.5], [2.5, 1, 1.0, -7, -4.5, "b", false, 2.5]]
# checks: 25
#
# elements = [0]
# nan = 0.0 / 0.0
# raises: ArgumentError at line 23, index 0, tick 0: comparison of Float with 0 failed

class Point
  attr_reader :x

  def initialize(x)
    @x = x
  end

  def ==(other) = x == other.x
end

elements.pmap do |x|
  greatest = [x, nan].max
  first = [1, 1.0].max
  other = [1.0, 1].min
  least = [x, 3.5].min
  sum = [x, 2.5].sum
  word = ["a", "b"].max
  found = [Point.new(x), 7].include?(Point.new(0)) if x == 0
  [greatest, first, other, least, sum, word, found || false, [2.5].sum]
end
