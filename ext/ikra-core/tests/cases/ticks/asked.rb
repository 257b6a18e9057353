# What depends on the number of its tick raises nothing, but is no matter of how many ticks a launch has.
#
# elements = [Cell(sum: 0.5), Cell(sum: 0.25)]
# after: elements[0].sum => 5.0
# after: elements[1].sum => 4.75

class Cell
  attr_accessor :sum
end

elements.peach(3) { |cell| cell.sum += Ikra.tick + 0.5 }
