# frozen_string_literal: true

module Ikra
  class << self
    # @api private
    # What a text that Ikra wrote evaluates to, where nothing is known: at the top level it would assign locals of the program.
    #
    # @param name [String] what it is called in backtraces
    def __evaluate(text, name) = eval(text, __nowhere, name, 1) # rubocop:disable Security/Eval

    # @api private
    # What a lambda gives for a position. In a kernel the lambda is a function, of which values may be shared: neighbours ask for the same
    # positions. Behind the position: how far, in each dimension, it is from the one that the caller is asked for, and how many there are.
    def __staged(producer, position, *) = producer.call(position)

    private

    def __nowhere = binding
  end
end
