# Cars, buses and pedestrians on two streets that lead into each other.
#
# s1 = Street(length: 100.0, max_velocity: 10.0)
# s2 = Street(length: 50.0, max_velocity: 20.0)
# s1.set(ways: [s2, s1])
# s2.set(ways: [s1])
# weather = :rainy
# a = Car(street: s1, progress: 0.0, max_velocity: 15.0, dice: 1)
# b = Bus(street: s2, progress: 45.0, max_velocity: 12.0, dice: 2)
# c = Pedestrian(street: s1, progress: 1.0, dice: 3)
# elements = [c, a, b]
# after: a.progress => 72.0
# after: b.progress => 63.0
# after: c.progress => 11.337259201341869
# after: a.dice => 662824084
# after: b.dice => 671064393
# after: a.street.length => 100.0
# checks: 0

class Street
  attr_reader :length, :max_velocity, :ways
end

module Dice
  def roll
    @dice = (@dice * 1_103_515_245 + 12_345) & 0x7fffffff
  end

  def draw(count)
    (roll >> 16) % count
  end
end

class Actor
  include Dice

  attr_reader :street, :progress, :dice

  private

  def advance(distance)
    @progress += distance
    if @progress < 0.0
      @progress = 0.0
    elsif @progress >= @street.length
      turn
    end
  end

  def turn
    ways = @street.ways
    if ways.empty?
      @progress = @street.length
    else
      @street = ways[draw(ways.size)]
      @progress = 0.0
    end
  end
end

class Vehicle < Actor
  private

  def drive(grip)
    limit = @street.max_velocity
    velocity = @max_velocity < limit ? @max_velocity : limit
    advance(velocity * grip)
  end
end

class Car < Vehicle
  def move(weather)
    case weather
    when :rainy then drive(0.8)
    when :snowy then drive(0.5)
    else drive(1.0)
    end
  end
end

class Bus < Vehicle
  def move(weather)
    drive(weather == :sunny ? 1.0 : 0.7)
  end
end

class Pedestrian < Actor
  def move(_weather)
    advance((-2.0 + 6.0 * roll / 2_147_483_648.0) * 0.44704)
  end
end

elements.peach(40) { |actor| actor.move(weather) }
