# A tree of two kinds of node, walked by methods that call each other.
#
# elements = [Fork(left: Leaf(n: 1), right: Fork(left: Leaf(n: 2), right: Leaf(n: 3))), Leaf(n: 7)]
# gives: [603, 701]

class Node
end

class Leaf < Node
  def sum = @n
  def depth = 1
end

class Fork < Node
  def sum = @left.sum + @right.sum

  def depth
    l = @left.depth
    r = @right.depth
    1 + (l > r ? l : r)
  end
end

elements.pmap { |node| node.sum * 100 + node.depth }
