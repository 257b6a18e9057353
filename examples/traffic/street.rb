# frozen_string_literal: true

module Traffic
  # One direction of a street, from one intersection to the next. Lengths are metres, velocities metres per second.
  class Street
    attr_reader :from, :to, :length, :max_velocity, :kind, :name

    # The next streets after this one's end, for pedestrians. These are all but the way back, or the way back where
    # there is no other.
    attr_accessor :neighbors

    # Those of the next streets that are open to cars and buses.
    attr_accessor :roads

    def initialize(from:, to:, length:, max_velocity:, kind: nil, name: nil)
      @from = from
      @to = to
      @length = length
      @max_velocity = max_velocity
      @kind = kind
      @name = name
      @neighbors = []
      @roads = []
    end

    def inspect
      "#<#{self.class} #{name || kind} #{from}->#{to}>"
    end
  end
end
