# frozen_string_literal: true

module Ikra
  # The parallel methods of Array and Range. Each means what the method of Enumerable without the +p+ means: the block runs
  # for every element, on many at the same time, and gives what sequential Ruby gives. If it raises for any element, nothing
  # is changed.
  #
  # All take the options of {Config} as keywords. Ranges are of Integers, and have an end.
  module Parallel
    # What +map+ gives.
    #
    # @example
    #   scale = 2.5
    #   [1, 2, 3].pmap { |x| x * scale } # => [2.5, 5.0, 7.5], 1 kernel
    # @yieldparam element
    # @return [Array] the block's value for each element; without a block an Enumerator
    # @raise [CompileError] for a block that Ikra cannot run
    def pmap(**options, &block)
      return to_enum(:pmap, **options) { size } unless block

      begin
        ::Ikra.__section(:map, self, 1, options, block)
      rescue ::Ikra::CompileError => error
        ::Ikra.__fallback(error, :map, self, 1, options, block)
      end
    end

    # What +ticks.times { each { … } }+ does: every element finishes a tick before any begins the next. What the block
    # changes in objects, arrays and captured variables is in them afterwards.
    #
    # @example
    #   actors.peach(1000) { |actor| actor.move(weather) } # => actors, 1 kernel
    # @param ticks [Integer] how often the block runs for each element
    # @yieldparam element
    # @return [Array, Range] the receiver; without a block an Enumerator
    # @raise [CompileError] for a block that Ikra cannot run
    def peach(ticks = 1, **options, &block)
      return to_enum(:peach, ticks, **options) { size } unless block
      raise ArgumentError, "ticks: #{ticks.inspect} is not an Integer" unless ticks.is_a?(Integer)
      raise ArgumentError, "ticks: #{ticks} is negative" if ticks.negative?

      begin
        ::Ikra.__section(:each, self, ticks, options, block)
      rescue ::Ikra::CompileError => error
        ::Ikra.__fallback(error, :each, self, ticks, options, block)
      end
    end
  end

  class << self
    # @api private
    def __fallback(...) = Fallback.run(...)
  end
end
