# A list of Structs, which refer to their own class.
#
# tail = Link(value: 3, following: nil)
# list = Link(value: 1, following: Link(value: 2, following: tail))
# elements = [list, tail, Link(value: 1, following: Link(value: 2, following: Link(value: 3, following: nil))), Link(value: 1, following: Link(value: 2, following: Link(value: 4, following: nil)))]
# gives: [63, 30, 63, 70]
# checks: 49

Link = Struct.new(:value, :following) do
  def sum = value + (following ? following.sum : 0)
end

elements.pmap { |link| link.sum * 10 + (link == list ? 1 : 0) + (link.following == list.following ? 2 : 0) }
