# Elements that read what others write see the last tick's state only between launches.
#
# a = Cell(value: 1.0, seen: 0.0)
# b = Cell(value: 2.0, seen: 0.0)
# c = Cell(value: 4.0, seen: 0.0)
# a.set(left: c)
# b.set(left: a)
# c.set(left: b)
# elements = [a, b, c]
# after: a.seen => 12.0
# after: c.seen => 6.0
# after: b.value => 2.0

class Cell
  attr_reader :value

  def look
    @seen += @left.value
  end
end

elements.peach(3) { |cell| cell.look }
