# Hashes in objects, in arrays and in Hashes.
#
# unit = Unit(prices: { day: { low: 1, high: 4 }, night: { low: 2 } }, n: 0)
# elements = [:day, :night, :noon]
# gives: [214, 119, -11]
# checks: 16

class Unit
  attr_reader :prices

  def price(time, level) = @prices.dig(time, level) || -1
end

elements.pmap { |time| unit.price(time, :low) * 10 + unit.price(time, :high) + (unit.prices[time] ? unit.prices[time].size * 100 : 0) }
