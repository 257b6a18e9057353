# An ivar of three types, missing in one object, and a reference to objects of two classes.
#
# leaf = Leaf(size: 3)
# elements = [Slot(value: 1, next: leaf), Slot(value: 2.5, next: nil), Slot(value: nil, next: Branch(size: 4)), Slot(next: leaf), Slot(value: :x)]
# gives: [4, 3.0, 400, 3, -1]

class Leaf
  def weight = @size
end

class Branch
  def weight = @size * 100
end

class Slot
  attr_reader :value

  def sum
    case @value
    when nil then @next ? @next.weight : 0
    when Symbol then -1
    else @value + (@next ? @next.weight : 0.5)
    end
  end
end

elements.pmap { |slot| slot.sum }
