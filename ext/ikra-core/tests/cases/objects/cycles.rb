# A linked ring is followed for a while.
#
# a = Link(n: 1)
# b = Link(n: 10, other: a)
# c = Link(n: 100, other: b)
# a.set(other: c)
# elements = [a, b, c]
# gives: [212, 122, 221]

class Link
  attr_reader :n, :other
end

elements.pmap do |link|
  sum = 0
  at = link
  5.times do
    sum += at.n
    at = at.other
  end
  sum += 1000 if at.equal?(link)
  sum
end
