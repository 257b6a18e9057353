# frozen_string_literal: true

module Ikra
  # What a parallel method gives without a block: an Enumerator whose +with_index+ and +each+ are parallel, too.
  #
  # @example
  #   %i[a b].pmap.with_index(1) { |name, i| i } # => [1, 2], 1 kernel
  class Enumerator < ::Enumerator
    # @api private
    # @param elements [#size, #each] what it goes over
    def initialize(base, operation, args, options, elements = base)
      super(elements.size) { |yielder| elements.each { |element| yielder << element } }
      @base = base
      @operation = operation
      @args = args
      @options = options
    end

    # The operation, with this block.
    #
    # @return [Object] what the method gives with a block; without one self
    def each(*more, &block)
      return super unless more.empty? && users?(block)

      Operation.call(@base, @operation, @options, block, *@args)
    end

    # The operation, with a block that is given the index beside the element.
    #
    # @param offset [Integer] the first index
    # @yieldparam element
    # @yieldparam index [Integer]
    # @return [Object] what the method gives with a block
    def with_index(offset = 0, &block)
      return super unless users?(block)

      offset = offset.nil? ? 0 : Operation.integer(offset)
      Operation.call(@base, @operation, @options, block, *@args, offset: offset)
    end

    # The same from 0.
    def each_with_index(&block)
      users?(block) ? with_index(0, &block) : super
    end

    def inspect = "#<#{::Enumerator}: #{@base.inspect}:#{@operation}#{"(#{@args.map(&:inspect).join(", ")})" unless @args.empty?}>"
    alias to_s inspect

    private

    # What Enumerable's own methods go over the elements with is no block of the user's.
    def users?(block) = !block.nil? && (block.lambda? || !block.source_location.nil?)
  end
end
