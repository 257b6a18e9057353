# Objects share others; a reference may lead in a circle.
#
# a = Street(length: 10.0)
# b = Street(length: 20.0, successor: a)
# a.set(successor: b)
# elements = [Actor(street: a, at: 9.5), Actor(street: b, at: 3.0), Actor(street: a, at: 0.0)]
# after: elements[0].street => Street#2
# after: elements[0].at => 0.5
# after: elements[1].at => 4.0
# after: elements[2].street => Street#1

class Street
  attr_reader :length, :successor
end

class Actor
  def move
    @at += 1.0
    return if @at < @street.length

    @at -= @street.length
    @street = @street.successor
  end
end

elements.peach { |actor| actor.move }
