# frozen_string_literal: true

module Ikra
  # Where the time of sections went.
  class Profile
    # @return [Object] what the block of {Ikra.profile} gave
    attr_reader :value

    # @return [Hash{Symbol => Float}] seconds by phase: +:source+ (finding and parsing the block), +:infer+ (types, and the
    #   program), +:compile+ (machine code), +:trace+ (reachable objects), +:pack+ (to columns), +:upload+, +:kernel+,
    #   +:download+, +:unpack+ (back to objects)
    attr_reader :phases

    # @return [Float] seconds of the whole block, what was not Ikra's included
    attr_reader :seconds

    def initialize(value, phases, seconds)
      @value = value
      @phases = phases
      @seconds = seconds
    end

    def to_s
      rows = phases.to_a.push([:other, seconds - phases.values.sum])
      rows.map { |name, time| format("%-10s%12.3f ms%6.1f %%", name, time * 1e3, seconds.zero? ? 0.0 : time / seconds * 100) }.join("\n")
    end

    def inspect
      shown = phases.select { |_, time| time.positive? }.map { |name, time| format("%s: %.3f ms", name, time * 1e3) }
      "#<#{self.class} #{shown.join(", ")}>"
    end
  end

  class << self
    # Measures the sections that the block runs on this thread.
    #
    # @example
    #   puts Ikra.profile { actors.peach(1000) { |actor| actor.move(weather) } }
    # @return [Profile]
    def profile
      __profile_start
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      begin
        value = yield
      ensure
        seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
        phases = __profile_stop
      end
      Profile.new(value, phases, seconds)
    end
  end
end
