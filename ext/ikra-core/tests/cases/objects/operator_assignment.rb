# Operators with assignment on ivars, attributes and elements evaluate their target once.
#
# elements = [Box(n: 1, items: [5, nil], looked: 0), Box(n: nil, items: [7, 8], looked: 0)]
# gives: [28, 35]
# after: elements[0].items => [3, 23]
# after: elements[1].items => [3, 20]
# after: elements[0].looked => 2
# after: elements[1].n => 12

class Box
  attr_accessor :n, :items, :looked

  def place
    @looked += 1
    1
  end

  def change
    @n ||= 10
    self.n += 2
    n = self.n
    items[place] ||= 20
    items[place] += n
    items[0] &&= 3
    @n -= 1 unless @n > 5
    items[0] + items[1] + @n
  end
end

elements.pmap { |box| box.change }
