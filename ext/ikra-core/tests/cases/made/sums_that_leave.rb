# Sums of objects that loops make are registers, and one object each where they leave the block.
#
# elements = [Body(steps: 3), Body(steps: 0)]
# after: elements[0].sum.x => 3.0
# after: elements[0].sum.y => 1.5
# after: elements[0].pair => [8, 2]
# after: elements[1].sum.x => 0.0
# after: elements[1].sum.y => 0.0
# after: elements[1].pair => [0, 1]
# shows: after:scalar_replacement

Vector = Struct.new(:x, :y) do
  def +(other) = Vector.new(x + other.x, y + other.y)
end

class Body
  attr_reader :steps, :sum, :pair

  def push
    sum = Vector.new(0.0, 0.0)
    pair = [0, 1]
    @steps.times do |i|
      next if i == 7

      sum += Vector.new(i * 1.0, 0.5)
      pair = [pair[0] + pair[1] + i, 2]
    end
    @sum = sum
    @pair = pair
  end
end

elements.peach { |body| body.push }
