# Methods read and write the ivars of elements.
#
# car = Car(speed: 1.0, distance: 0.5)
# slow = Car(speed: 0.25, distance: 0.0)
# elements = [car, slow]
# gives: [Car#1, Car#2]
# after: car.distance => 3.5
# after: slow.distance => 0.5
# after: slow.speed => 0.25

class Car
  attr_reader :speed
  attr_accessor :distance

  def move(seconds)
    @distance += speed * seconds
    self.distance = distance + 1 if @distance > 2
  end
end

elements.peach { |car| car.move(2) }
