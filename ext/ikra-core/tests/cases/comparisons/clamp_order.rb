# clamp between bounds in the wrong order, and == where <=> is not defined.
#
# low = Size(n: 1)
# high = Size(n: 9)
# elements = [Size(n: 0), Size(n: 5), Size(n: 10), low]
# gives: [10, 50, 90, 11]
#
# low = Size(n: 9)
# high = Size(n: 1)
# elements = [Size(n: 0)]
# raises: ArgumentError at line 25, index 0, tick 0: min argument must be smaller than max argument

class Size
  include Comparable

  attr_reader :n

  def <=>(other) = n <=> other.n
end

class Plain
  include Comparable
end

elements.pmap { |s| s.clamp(low, high).n * 10 + (s == low ? 1 : 0) }
