# frozen_string_literal: true

require_relative "groups/columns"

module Ikra
  # The result of {Parallel#pmap_reduce} with `lazy: true`: pairs of keys and values, in order.
  #
  # @example
  #   counts = words.pmap_reduce(:+, lazy: true) { |word, out| out.emit(word, 1) }
  #   counts.size    # => 2
  #   counts["the"]  # => 3
  #   counts.map_reduce(:+) { |(word, count), out| out.emit(word.size, count) }
  class Groups
    include Enumerable

    # @api private
    # @param pairs [Hash, Array<Array>, Columns, Lazy::WordCounts]
    def initialize(pairs)
      @pairs = pairs
    end

    # @api private
    # The result of {Reducing} whose groups stay in columns (see Columns#initialize).
    def self.columns(*columns) = Columns.new(*columns)

    # @return [Integer] the number of pairs
    def size = @pairs.size

    # @param key
    # @return [Object, nil] the value of the key's group
    def [](key) = @pairs.is_a?(Array) ? @pairs.find { |own, _| own.eql?(key) }&.last : @pairs[key]

    # @yieldparam pair [Array] a key and its value
    # @return [self, Enumerator]
    def each(&block)
      return @pairs.to_a.each unless block

      @pairs.to_a.each(&block)
      self
    end

    # @return [Array<Array>] the +count+ pairs with the greatest values, the greatest first; of equal ones the first
    def top(count) = Ikra.__top(@pairs, count)

    # @yieldparam key
    # @yieldparam value
    # @yieldreturn [Array] a key and a value for the Hash
    # @return [Hash] a new one, of the pairs or of what the block makes of them
    def to_h(&block) = block ? @pairs.to_h.to_h(&block) : @pairs.to_h.dup

    # A second pass, over the pairs.
    #
    # @param combine (see Parallel#pmap_reduce)
    # @param reduce (see Parallel#pmap_reduce)
    # @param order (see Parallel#pmap_reduce)
    # @param lazy (see Parallel#pmap_reduce)
    # @param engine (see Parallel#pmap_reduce)
    # @yieldparam pair [Array] a key and its value
    # @yieldparam out [Emitter]
    # @return (see Parallel#pmap_reduce)
    def map_reduce(combine = nil, reduce: nil, order: :first, lazy: false, engine: nil, **options, &block)
      Ikra.__map_reduce(__base(options), combine, reduce, order, lazy, { engine: engine, **options }, block)
    end

    # @api private
    # What a second pass runs over: the pairs, or a chain that has them.
    def __base(options) = @pairs.is_a?(Columns) ? @pairs.chain(options) : @pairs.to_a

    # @api private
    # What Marshal writes: the pairs, not their columns.
    def marshal_dump = @pairs.is_a?(Array) ? @pairs : @pairs.to_h

    # @api private
    def marshal_load(pairs)
      @pairs = pairs
    end

    # Without the values.
    def inspect = "#<#{self.class} of #{size}>"
  end

  # What Ikra adds to Hash.
  module Tops
    # @example
    #   { "a" => 1, "b" => 3, "c" => 3 }.top(2) # => [["b", 3], ["c", 3]]
    # @param count [Integer]
    # @return [Array<Array>] the +count+ pairs with the greatest values, the greatest first; of equal ones the first
    # @raise [ArgumentError] where values do not compare
    def top(count) = Ikra.__top(self, count)
  end

  class << self
    # @api private
    def __top(pairs, count)
      count = __count(count) or raise ArgumentError, "no number of pairs"
      return pairs.top(count) if pairs.is_a?(Lazy::WordCounts)

      values = pairs.is_a?(Array) ? pairs.map(&:last) : pairs.values
      places = __places_of_greatest(values, count)
      order = Operation.stable(places.size) { |i, j| Operation.compare(values[places[j]], values[places[i]]) { |one, other| one <=> other } }
      # Not by values_at, because Ruby's stack has no room for many arguments.
      found = order.first(count).map { |place| places[place] }
      case pairs
      when Array then found.map { |place| pairs[place] }
      when Hash
        keys = pairs.keys
        found.map { |place| [keys[place], values[place]] }
      else pairs.at(found)
      end
    end

    private

    # Where values are that may be among the +count+ greatest ones. Ruby finds the least of these without a call for
    # each comparison, where all are Integers.
    def __places_of_greatest(values, count)
      return values.each_index.to_a unless count.positive? && count < values.size && values.all?(Integer) && __own?(:<=>)

      least = values.max(count).last
      values.each_index.select { |place| values[place] >= least }
    end
  end
end
