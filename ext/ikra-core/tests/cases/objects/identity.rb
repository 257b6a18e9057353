# The same object several times in the base array is one object, run in index order.
#
# a = Counter(n: 0)
# b = Counter(n: 5)
# elements = [a, b, a, a]
# gives: [1, 6, 2, 3]
# after: a.n => 3

class Counter
  attr_reader :n

  def next!
    @n += 1
  end
end

elements.pmap { |counter| counter.next! }
