# What is made and stored comes back, each thing once, cycles too.
#
# a = Node(value: 1)
# b = Node(value: 2)
# elements = [a, b]
# after: a.left.value => 10
# after: a.right.value => 10
# after: a.left.left.value => 1
# after: a.other.value => 11
# after: a.other.left.value => 10
# after: b.left.value => 20
# after: b.other.right => nil

class Node
  attr_accessor :value, :left, :right, :other

  def initialize(value)
    @value = value
  end

  def grow
    child = Node.new(@value * 10)
    @left = child
    @right = child
    child.left = self
    @other = Node.new(@value * 10 + 1)
    @other.left = child
  end
end

elements.peach { |node| node.grow }
