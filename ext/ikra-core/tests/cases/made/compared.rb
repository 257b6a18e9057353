# New objects that are compared, and given back by what compares them.
#
# elements = [1, 5, 9]
# gives: [3, 5, 7]

class Best
  include Comparable

  attr_reader :n

  def initialize(n)
    @n = n
  end

  def <=>(other)
    @n <=> other.n
  end
end

elements.pmap do |i|
  kept = Best.new(i).clamp(Best.new(3), Best.new(7))
  kept == Best.new(i) || kept.n != i ? kept.n : -1
end
