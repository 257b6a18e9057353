# frozen_string_literal: true

module Ikra
  class << self
    # @api private
    # Evaluates a text that Ikra wrote, in a scope without variables. At the top level it would assign locals of the
    # program.
    #
    # @param name [String] its file name in backtraces
    def __evaluate(text, name) = eval(text, __nowhere, name, 1) # rubocop:disable Security/Eval

    # @api private
    # The value of a lambda at a position. In a kernel the lambda is a function whose values may be shared, because
    # neighbours need the same positions. After the position come, for each dimension, its distance from the caller's
    # own position, and the size.
    def __staged(producer, position, *) = producer.call(position)

    private

    def __nowhere = binding
  end
end
