# Comparable without <=>: only the same object is equal; Kernel's <=> is 0 for what is equal.
#
# one = Plain()
# elements = [one, Plain(), nil, true, false, Cell(n: 1), 3]
# gives: [1111, 100, 100, 100, 100, 10111, 10100]
# checks: 0

class Plain
  include Comparable
end

class Cell
  attr_reader :n

  def ==(other) = other == 3 || other.is_a?(Plain)
end

elements.pmap do |x|
  order = x <=> one
  (x == one ? 1 : 0) + (order ? 10 + order : 0) + ((x <=> x) == 0 ? 100 : 0) + (one === x ? 1000 : 0) + (x === 3 ? 10_000 : 0)
end
