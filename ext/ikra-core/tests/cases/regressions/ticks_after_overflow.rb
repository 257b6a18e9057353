# A loop that always raises in every tick, before conditions that no tick would change.
#
# leaf = Leaf()
# elements = [7]
# raises: Ikra::IntegerOverflow at line 11, index 0, tick 0: floor gives an Integer beyond 64 bits
# differs: Integers beyond 64 bits raise

class Leaf
  def walk(a = 1)
    (0..4).each do |i|
      case Float::MAX.floor
      when 1, 0
      else
        a *= 0
      end
    end
    (a + 1)
  end
end

elements.peach(2) do |x|
  leaf.walk(x)
  leaf.walk
end
