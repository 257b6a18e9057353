# `a&.x = v` evaluates `v`, and calls the writer, only where `a` is there; else it is nil.
#
# elements = [Node(value: 1, link: nil), Node(value: 2, link: Node(value: 7))]
# gives: [0, 27]
# after: elements[1].link.value => 7
# after: elements[1].value => 9
#
# elements = [Node(value: 1, link: nil), nil]
# raises: NoMethodError at line 21, index 1, tick 0: undefined method `link' for nil:NilClass

class Node
  attr_reader :link
  attr_accessor :value

  def copy
    self&.value = 9
  end
end

elements.pmap do |node|
  link = node.link
  calls = 0
  given = (link&.value = (calls += 20; 7))
  node.copy if given
  none = (nil&.value = (calls += 100))
  none.nil? && given ? calls + given : calls
end
