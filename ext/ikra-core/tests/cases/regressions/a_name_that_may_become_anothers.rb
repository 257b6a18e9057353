# What is written through a name that was not given to another object after all is written to the first.
#
# elements = [1, 2, -4]
# gives: [14, 14, 0]

class Cell
  attr_accessor :v

  def initialize(v)
    @v = v
  end
end

elements.pmap do |i|
  first = Cell.new(0)
  name = first
  2.times do |k|
    other = Cell.new(9)
    name = other if k == i + 4
    name.v += 7
  end
  first.v
end
