# A module is a value: passed, compared, and its methods called.
#
# weather = Weather::Rainy
# elements = [1.0, 4.0]
# gives: [0.5, 2.0]
#
# weather = Weather::Sunny
# elements = [1.0, 4.0]
# gives: [101.0, 104.0]

module Weather
  module Sunny
    def self.factor = 1.0
  end

  module Rainy
    def self.factor = 0.5
  end
end

elements.pmap { |speed| speed * weather.factor + (weather == Weather::Sunny ? 100 : 0) }
