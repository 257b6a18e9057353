# Each tick draws anew, and only where the program draws.
#
# elements = [Die(sum: 0, every: 1), Die(sum: 0, every: 2)]
# after: elements[0].sum => 33652
# after: elements[1].sum => 135

class Die
  def roll
    return unless Ikra.tick % @every == 0

    @sum = @sum * 10 + rand(1..6)
  end
end

elements.peach(5) { |die| die.roll }
