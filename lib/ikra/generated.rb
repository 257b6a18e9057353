# frozen_string_literal: true

module Ikra
  class << self
    # @api private
    # What a text that Ikra wrote evaluates to, where nothing is known: at the top level it would assign locals of the program.
    #
    # @param name [String] what it is called in backtraces
    def __evaluate(text, name) = eval(text, __nowhere, name, 1) # rubocop:disable Security/Eval

    private

    def __nowhere = binding
  end
end
