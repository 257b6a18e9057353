# A call on nil raises where it happens; `&.` does not call.
#
# elements = [Node(value: 1, link: nil), Node(value: 2, link: nil)]
# gives: [nil, nil]
#
# elements = [Node(value: 1, link: Node(value: 7)), Node(value: -2, link: nil)]
# raises: NoMethodError at line 19, index 1, tick 0: undefined method `value' for nil:NilClass

class Node
  attr_reader :value, :link

  def peek
    link&.value
  end
end

elements.pmap do |node|
  seen = node.peek
  node.value < 0 || seen == 7 ? node.link.value : seen
end
