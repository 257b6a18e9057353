# Objects of several classes that change by Floats alone: nothing raises, and nothing depends on which of them stands where.
#
# home = Place(far: 2.0)
# away = Place(far: 0.5)
#
# a = Car(at: 1.0, place: home)
# b = Bus(at: 0.0, place: away)
# c = Car(at: 8.0, place: away)
# elements = [a, b, c]
# after: a.at => 3.0
# after: b.at => 0.25
# after: c.at => 8.5
#
# elements = [Bus(at: 1.0, place: home)]
# after: elements[0].at => 2.0

class Place
  attr_reader :far
end

class Car
  attr_accessor :at

  def go = @at += step
  def step = @place.far
end

class Bus < Car
  def step = @place.far * 0.5
end

elements.peach { |car| car.go }
