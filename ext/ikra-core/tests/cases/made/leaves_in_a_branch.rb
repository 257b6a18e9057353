# What leaves on one way alone is made there. A way that raises makes none.
#
# elements = [Body(steps: 3), Body(steps: 0), Body(steps: 12)]
# after: elements[0].best.x => 6
# after: elements[1].best => nil
# after: elements[2].best.x => 24
#
# elements = [Body(steps: 3), Body(steps: -1)]
# raises: ZeroDivisionError at line 27, index 1, tick 0: divided by 0
# shows: after:scalar_replacement

class Spot
  attr_reader :x

  def initialize(x)
    @x = x
  end
end

class Body
  attr_reader :steps, :best

  def look
    spot = Spot.new(@steps * 2)
    return if spot.x == 0

    @best = spot if 100 / (@steps + 1) < 50
  end
end

elements.peach { |body| body.look }
