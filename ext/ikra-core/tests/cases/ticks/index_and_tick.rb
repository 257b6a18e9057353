# A block knows its tick and index.
#
# elements = [Cell(sum: 0), Cell(sum: 0), Cell(sum: 0)]
# after: elements[0].sum => 300
# after: elements[2].sum => 306

class Cell
  attr_accessor :sum
end

elements.peach(3) { |cell| cell.sum += Ikra.tick * 100 + Ikra.index }
