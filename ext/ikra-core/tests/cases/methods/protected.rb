# Protected methods and attributes are for instances of the class that defines them.
#
# elements = [Coin(value: 5), Coin(value: 7)]
# other = Coin(value: 6)
# gives: [-1, 1]

class Coin
  def compare(other) = value - other.value

  protected

  attr_reader :value
end

elements.pmap { |coin| coin.compare(other) }
