# Elements of several classes, a shared superclass, `super` and a module mixed in.
#
# elements = [Car(v: 3), Bus(v: 2, load: 5), Walker(v: 1), Car(v: 4)]
# gives: [30, 15, 0, 40]

module Slow
  def pace = super - 1
end

class Actor
  def pace
    @v * factor
  end

  def factor = 1
end

class Car < Actor
  def factor = 10
end

class Bus < Car
  def pace
    super - @load
  end
end

class Walker < Actor
  prepend Slow
end

elements.pmap { |actor| actor.pace }
