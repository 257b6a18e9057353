# frozen_string_literal: true

require_relative "street"
require_relative "weather"

module Traffic
  KMH = 1 / 3.6
  MPH = 0.44704

  # A participant on a street, +progress+ metres from its beginning. One call of a subclass's +move+ is one second.
  class Actor
    attr_reader :street, :progress

    def initialize(street, progress)
      @street = street
      @progress = progress
    end

    private

    def advance(distance)
      @progress += distance
      if @progress < 0.0
        @progress = 0.0
      elsif @progress >= @street.length
        turn
      end
    end

    # Turns at the end of the street into one of the next streets. Where there is none, the actor stays.
    def turn
      ways = ways_on
      if ways.empty?
        @progress = @street.length
      else
        @street = ways[draw(ways.size)]
        @progress = 0.0
      end
    end

    def ways_on
      @street.neighbors
    end

    def draw(count)
      rand(count)
    end
  end

  class Vehicle < Actor
    attr_reader :max_velocity

    def initialize(street, progress, max_velocity)
      super(street, progress)
      @max_velocity = max_velocity
    end

    private

    # Drives as fast as vehicle and street allow, times a factor of the weather.
    def drive(grip)
      limit = @street.max_velocity
      velocity = @max_velocity < limit ? @max_velocity : limit
      advance(velocity * grip)
    end

    def ways_on
      @street.roads
    end
  end

  class Car < Vehicle
    def move(weather)
      case weather
      when Weather::Rainy then drive(0.8)
      when Weather::Snowy then drive(0.5)
      else drive(1.0)
      end
    end
  end

  class Bus < Vehicle
    def move(weather)
      drive(weather == Weather::Sunny ? 1.0 : 0.7)
    end
  end

  class Pedestrian < Actor
    def move(_weather)
      advance(pace * MPH)
    end

    private

    # Miles per hour. A pedestrian who forgot something walks back.
    def pace
      rand(-2.0..4.0)
    end
  end
end
