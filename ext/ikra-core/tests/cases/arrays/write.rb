# Elements of arrays that each object owns are written.
#
# elements = [Row(cells: [1, 2, 3]), Row(cells: [4])]
# gives: [6, 9]
# after: elements[0].cells => [3, 4, 6]
# after: elements[1].cells => [9]

class Row
  def double
    @cells.each_with_index { |cell, i| @cells[i] = cell * 2 }
    @cells[0] += 1
    @cells[-1]
  end
end

elements.pmap { |row| row.double }
