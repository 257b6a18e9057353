# A car is assigned its own street in most ticks. Its fields are loaded again only where that changes the street.
#
# s1 = Street(length: 100.0, max_velocity: 10.0)
# s2 = Street(length: 50.0, max_velocity: 20.0)
# s1.set(ways: [s2, s1, s2])
# s2.set(ways: [s1, s2])
# a = Car(street: s1, progress: 0.0, max_velocity: 15.0, dice: 1)
# b = Car(street: s2, progress: 45.0, max_velocity: 12.0, dice: 2)
# elements = [a, b]
# after: a.progress => 0.0
# after: b.progress => 90.0
# after: a.dice => 1508029952
# after: b.dice => 1693263727
# after: a.street.length => 100.0
# after: b.street.length => 100.0
# shows: after:partial_redundancy

class Street
  attr_reader :length, :max_velocity, :ways
end

class Car
  attr_reader :street, :progress, :dice

  def move
    street = @street
    @progress += @max_velocity < street.max_velocity ? @max_velocity : street.max_velocity
    turns = @progress >= street.length
    @street = turns ? street.ways[roll % street.ways.size] : street
    @progress = 0.0 if turns
  end

  private

  def roll
    @dice = (@dice * 1_103_515_245 + 12_345) & 0x7fffffff
    @dice >> 16
  end
end

elements.peach(40) { |car| car.move }
