# frozen_string_literal: true

require_relative "own_dice"

module Traffic
  # Puts actors on a network: the same ones for the same seed.
  class Population
    # Of ten actors, six are cars, one is a bus.
    KINDS = %i[car car car car car car bus pedestrian pedestrian pedestrian].freeze

    CAR_VELOCITY = (80.0..130.0) # km/h, its own maximum
    BUS_VELOCITY = (45.0..60.0)

    def initialize(network, seed: 1, deterministic: false)
      @random = Random.new(seed)
      @deterministic = deterministic
      @streets = ByLength.new(network.streets)
      @roads = ByLength.new(network.roads)
    end

    def actors(count)
      Array.new(count) { actor(KINDS.sample(random: @random)) }
    end

    private

    def actor(kind)
      case kind
      when :car then make(@deterministic ? SteadyCar : Car, *@roads.place(@random), @random.rand(CAR_VELOCITY) * KMH)
      when :bus then make(@deterministic ? SteadyBus : Bus, *@roads.place(@random), @random.rand(BUS_VELOCITY) * KMH)
      else make(@deterministic ? SteadyPedestrian : Pedestrian, *@streets.place(@random))
      end
    end

    def make(kind, *state)
      @deterministic ? kind.new(*state, @random.rand(1 << 31)) : kind.new(*state)
    end

    # Draws places so that every metre of street is as likely as any other.
    class ByLength
      def initialize(streets)
        @streets = streets
        total = 0.0
        @ends = streets.map { |street| total += street.length }
      end

      def place(random)
        metre = random.rand(@ends.last)
        index = @ends.bsearch_index { |ending| ending > metre }
        street = @streets[index]
        [street, (street.length - (@ends[index] - metre)).clamp(0.0, street.length)]
      end
    end
    private_constant :ByLength
  end
end
