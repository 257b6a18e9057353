# frozen_string_literal: true

require_relative "actor"

module Traffic
  # Actors without +rand+. Each has a random generator of its own, a linear congruential one, so that a run is the same
  # to the last bit on every machine. The classes are those of actor.rb in everything else.
  module OwnDice
    attr_reader :dice

    def initialize(*place, dice)
      super(*place)
      @dice = dice
    end

    private

    def roll
      @dice = (@dice * 1_103_515_245 + 12_345) & 0x7fffffff
    end

    # From the upper bits: the lower ones of such a generator hardly vary.
    def draw(count)
      (roll >> 16) % count
    end

    def pace
      -2.0 + 6.0 * roll / 2_147_483_648.0
    end
  end

  class SteadyCar < Car
    include OwnDice
  end

  class SteadyBus < Bus
    include OwnDice
  end

  class SteadyPedestrian < Pedestrian
    include OwnDice
  end
end
