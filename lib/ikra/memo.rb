# frozen_string_literal: true

module Ikra
  # What was made for each key, in any thread.
  #
  # Ruby may run another thread while it compares two keys. If that thread changes the Hash, the look-up may give the
  # value of another key. So no Hash is changed here: a new one takes its place. Two threads may both make the value of
  # a key, and one of the values is forgotten.
  # @api private
  class Memo
    # @param most [Integer] the most keys. Beyond them the oldest is forgotten.
    def initialize(most)
      @most = most
      @known = {}.freeze
    end

    # @return [Object, nil] nil where nothing was made
    def [](key) = @known[key]

    # Keeps a value, which is given back.
    def keep(key, value)
      known = @known
      known = known.drop(1).to_h if known.size >= @most
      @known = known.merge(key => value).freeze
      value
    end
  end
  private_constant :Memo
end
