# Ruby evaluates the receiver and the index of an assignment before the value.
#
# elements = [Row(cells: [1, 2, 3], at: 0), Row(cells: [4, 5, 6], at: 1)]
# gives: [12, 13]
# after: elements[0].cells => [1, 10, 21]
# after: elements[1].cells => [4, 5, 21]
# after: elements[1].at => 2
#
# elements = [Row(cells: [1], at: nil)]
# raises: NoMethodError at line 15, index 0, tick 0: undefined method `+' for nil:NilClass

class Row
  attr_accessor :cells, :at

  def next! = @at += 1

  def step(i)
    @cells[next! % 3] = (@at * 10)
    cells[i], other = (i = 20) + 1, i
    @cells[(i = 0) + 2] = 21
    other - 10 + i + @at + 1
  end
end

elements.pmap { |row| row.step(2) }
