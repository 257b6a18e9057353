# Arrays stored into ivars and arrays come back, each once.
#
# elements = [Row(cells: [0]), Row(cells: [1, 2])]
# after: elements => [Row#1, Row#2]
# after: elements[0].cells => [1, 1]
# after: elements[1].cells => [3, 2]
# after: elements[1].copy => [3, 2]
# after: elements[0].pair => [[1, 1], [1, 1]]

class Row
  attr_reader :cells, :copy, :pair

  def double
    list = Array.new(2, @cells[0] + 1)
    list[0] = list[1] + @cells.size - 1
    list[1] = @cells.size > 1 ? 2 : 1
    @pair = [list, list]
    @cells = list
    @copy = @pair[0]
  end
end

elements.peach { |row| row.double }
