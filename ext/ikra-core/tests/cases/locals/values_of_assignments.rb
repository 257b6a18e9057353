# The value of an assignment to several targets is its right side.
#
# elements = [0, 7, -3]
# gives: [[[0, 1], [0, 0], 0, [2, 0.5], [[3, :a], 3, :a]], [[7, 1], [2, 1], 7, [2, 0.5], [[3, :a], 3, :a]], [[-3, 1], [-1, 0], -3, [2, 0.5], [[3, :a], 3, :a]]]

class Pair
  attr_accessor :a, :b

  def set
    @a, @b = 2, 0.5
  end
end

def pair(x)
  a, b = x, 1
end

elements.pmap do |x|
  whole = (q, r = x.divmod(3))
  whole = [q, r] if x == 1000
  one = (a, b = x)
  list = (c, d = [3, :a])
  [pair(x), whole, one, Pair.new.set, [list, c, d]]
end
