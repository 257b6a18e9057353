# frozen_string_literal: true

module Ikra
  class << self
    # Number of the running tick, from 0. For use inside the block of a parallel method.
    #
    # @example
    #   [1, 1].peach(3) { … Ikra.tick … } # 0, 1, 2
    # @return [Integer]
    # @raise [RuntimeError] outside of a section
    def tick = __position.tick

    # Index of the running element in the Array or Range, from 0. For use inside the block of a parallel method.
    #
    # @example
    #   %i[a b c].pmap { Ikra.index } # => [0, 1, 2], 1 kernel
    # @return [Integer]
    # @raise [RuntimeError] outside of a section
    def index = __position.index

    # Seeds +rand+ in kernels and begins to count sections anew: the same program draws the same numbers again, on every
    # backend and with any number of threads.
    #
    # @param seed [Integer, nil] nil: a fresh one
    # @return [Integer] the seed before
    def srand(seed = nil)
      __seed(seed && (Integer(seed) & 0xffff_ffff_ffff_ffff))
    end

    # @api private
    def __position
      Thread.current[:__ikra_position] or raise "Ikra.tick and Ikra.index are known only inside the block of a parallel method"
    end
  end
end
