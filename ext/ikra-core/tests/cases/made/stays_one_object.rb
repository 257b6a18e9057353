# Objects that are changed, compared or read after they left, that leave twice, or that may be nil.
#
# elements = [Body(steps: 3), Body(steps: 1)]
# after: elements[0].one.x => 99
# after: elements[0].two.x => 99
# after: elements[0].twice.x => 4
# after: elements[0].seen => 5
# after: elements[0].last.x => 2
# after: elements[0].same => true
# after: elements[1].one.x => 99
# after: elements[1].two.x => 99
# after: elements[1].twice.x => 0
# after: elements[1].seen => 1
# after: elements[1].last => nil
# after: elements[1].same => true

class Spot
  attr_accessor :x

  def initialize(x)
    @x = x
  end
end

class Body
  attr_reader :steps, :one, :two, :twice, :seen, :last, :same

  def look
    changed = Spot.new(0)
    @steps.times { |i| changed = Spot.new(changed.x + i) }
    @one = changed
    changed.x = 99
    left_twice = Spot.new(1)
    @steps.times { |i| left_twice = Spot.new(left_twice.x + i) }
    @two = left_twice
    @two.x = 99
    @one = left_twice if @steps == 2
    kept = Spot.new(0)
    @steps.times do |i|
      @twice = kept
      kept = Spot.new(kept.x + i)
      @twice.x += 1 if i == 2
    end
    @twice = @steps > 2 ? kept : @twice
    @twice.x += 1 if @steps > 2
    @seen = kept.x + @steps - 3 + (@steps > 2 ? 1 : 3)
    perhaps = nil
    @steps.times { |i| perhaps = Spot.new(i) if i > 1 }
    @last = perhaps
    compared = Spot.new(0)
    other = compared
    @steps.times { |i| compared = Spot.new(i) if i > 5 }
    @same = other.equal?(compared)
  end
end

elements.peach { |body| body.look }
