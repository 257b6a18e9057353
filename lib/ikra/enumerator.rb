# frozen_string_literal: true

module Ikra
  # The result of a parallel method without a block: an Enumerator whose +with_index+ and +each+ are parallel, too.
  #
  # @example
  #   %i[a b].pmap.with_index(1) { |name, i| i } # => [1, 2], 1 kernel
  class Enumerator < ::Enumerator
    # @api private
    # @param elements [#size, #each] what it enumerates
    def initialize(base, operation, args, options, elements = base)
      CoreMethods.check
      super(elements.size) { |yielder| elements.each { |element| yielder << element } }
      @base = base
      @operation = operation
      @args = args
      @options = options
    end

    # Runs the operation with this block.
    #
    # @return [Object] what the method gives with a block; without one self
    def each(*more, &block)
      return super unless more.empty? && users?(block)

      at_once = -> { Operation.call(@base, @operation, @options, block, *@args) }
      Sections.queued(@operation, &at_once) || at_once.call
    end

    # Runs the operation with a block that gets each element and its index.
    #
    # @param offset [Integer] the first index
    # @yieldparam element
    # @yieldparam index [Integer]
    # @return [Object] what the method gives with a block
    def with_index(offset = 0, &block)
      return super unless users?(block)

      offset = offset.nil? ? 0 : Operation.integer(offset)
      at_once = -> { Operation.call(@base, @operation, @options, block, *@args, offset: offset) }
      Sections.queued(@operation, &at_once) || at_once.call
    end

    # Runs the same with indices from 0.
    def each_with_index(&block)
      users?(block) ? with_index(0, &block) : super
    end

    # The base and the operation, as Ruby shows an Enumerator. No kernel runs.
    #
    # @return [String]
    def inspect = "#<#{::Enumerator}: #{@base.inspect}:#{@operation}#{"(#{@args.map(&:inspect).join(", ")})" unless @args.empty?}>"
    alias to_s inspect

    private

    # Whether a block is the user's. Enumerable's own methods pass blocks of their own.
    def users?(block) = !block.nil? && (block.lambda? || !block.source_location.nil?)
  end
end
