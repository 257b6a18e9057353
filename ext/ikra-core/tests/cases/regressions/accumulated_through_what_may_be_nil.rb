# An ivar that was nil, or is for one element: all others still accumulate, and none is lost.
#
# a = Group(sum: 0, count: 0)
# b = Group(sum: 0, count: 0)
# groups = [a, b]
# elements = [Member(size: 4, group: nil), Member(size: 6, group: nil), Member(size: 5, group: nil), Member(size: 7, group: b)]
# after: a.sum => 10
# after: b.sum => 12
# after: b.count => 2
#
# a = Group(sum: 0, count: 0)
# groups = [a, nil]
# elements = [Member(size: 2, group: a), Member(size: 3, group: nil), Member(size: 5, group: nil)]
# raises: NoMethodError at line 23, index 1, tick 0: undefined method `sum' for nil:NilClass

class Group
  attr_accessor :sum, :count
end

class Member
  def join(groups)
    @group = groups[@size % 2]
    @group.sum += @size
    @group.count += 1
  end
end

elements.peach { |member| member.join(groups) }
