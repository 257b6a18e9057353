# frozen_string_literal: true

require "set"

module Ikra
  module Parallel
    # The parallel methods of Hash, Set and Enumerator (ArithmeticSequence is one). They run over the Array that +to_a+
    # gives, with the meaning that Ruby's own methods have for the receiver. +pselect+ and similar methods give what
    # +select+ gives: for a Hash, a Hash. Methods that change the receiver are left out.
    #
    # @example
    #   { a: 1, b: 2 }.pmap { |key, value| value * 10 }      # => [10, 20], 1 kernel
    #   { a: 1, b: 2 }.pselect { |key, value| value.even? }  # => { b: 2 }
    #   (1..10).step(3).pmap { |x| x * x }                   # => [1, 16, 49, 100]
    module Through
      # These methods have instruction sequences, which refinements can import.
      module_eval(Parallel.public_instance_methods(false).map { |name| "def #{name}(*args, **options, &block) = ::Ikra.__through(self, :#{name}, args, options, block)" }.join("\n"),
                  __FILE__, __LINE__)
    end
  end

  # One call of such a method.
  # @api private
  module Through
    METHODS = Parallel.public_instance_methods(false).to_h { |name| [name, Parallel.instance_method(name)] }.freeze
    # Methods that give elements in the receiver's class.
    CHOOSING = %i[pselect pfilter preject].freeze
    # Methods whose block gets several values where an Enumerator yields several. The blocks of others get an Array.
    SPREAD = %i[pmap peach pfilter_map pflat_map pcount pall? pany? pnone? pone? puniq pfind_index].freeze

    class << self
      def call(whole, name, args, options, block)
        at_once = -> { now(whole, name, args, options, block) }
        # Without a block, an Enumerator or a chain is given, or Ruby's own method is called, which may be queued.
        (Sections.queued(name, single: false, block: block, &at_once) if block) || at_once.call
      end

      def now(whole, name, args, options, block)
        Sections.wait_for_others
        list = list(whole)
        return chosen(whole, list, name, options, block) if CHOOSING.include?(name) && !whole.is_a?(::Enumerator)

        list = spread(whole, list, name, block) if block.nil? ? name == :plazy : SPREAD.include?(name)
        value = METHODS.fetch(name).bind_call(list, *args, **options, &block)
        value.equal?(list) ? whole : value
      end

      # Calls Ruby's own method on a list, or on substitutes of its elements, to choose these elements.
      def pick(whole, list, chosen)
        at = found = -1
        whole.select do
          at += 1
          found + 1 < chosen.size && chosen[found + 1].equal?(list[at]) && (found += 1)
        end
      end

      private

      def list(whole)
        return whole.to_a unless whole.is_a?(::Enumerator)
        raise ArgumentError, "#{whole.inspect} is lazy: call to_a first, or begin with plazy in place of lazy" if whole.is_a?(::Enumerator::Lazy)
        raise ArgumentError, "#{whole.inspect} has no end: take some of it (first, take)" if whole.size == Float::INFINITY

        whole.to_a
      end

      def chosen(whole, list, name, options, block)
        operation = name == :preject ? :preject : :pselect
        return Choice.new(whole, list, operation, options) unless block

        list = first_values(list, name, block) if whole.is_a?(Hash)
        pick(whole, list, Operation.call(list, operation, options, block) { |value| return value })
      end

      def spread(whole, list, name, block)
        # It yields one value, or several.
        return list unless list.first.is_a?(Array) && whole.is_a?(::Enumerator) && whole.each { |*values| break values.size > 1 }

        first_values(list, name, block)
      end

      # The block's argument where Ruby passes several values, and not an Array of them: one parameter takes the first.
      def first_values(list, name, block)
        kinds = block ? block.parameters.map(&:first) : [:rest]
        return list if kinds.empty? || (!block&.lambda? && kinds.size > 1)
        raise CompileError, "#{name} gives several values at a time here, which this block takes as no kernel can: call to_a first" if block.nil? || block.lambda? || kinds.first != :opt

        list.map(&:first)
      end
    end

    # The result of a choosing method without a block.
    class Choice < Enumerator
      def initialize(whole, list, operation, options)
        super(list, operation, [], options)
        @whole = whole
      end

      def each(*more, &block)
        return super unless more.empty? && users?(block)

        # Ruby gives a block a key and a value here, too.
        Through.call(@whole, @operation, [], @options, block)
      end

      def with_index(offset = 0, &block)
        return super unless users?(block)

        offset = offset.nil? ? 0 : Operation.integer(offset)
        Through.pick(@whole, @base, Operation.call(@base, @operation, @options, block, offset: offset) { |value| return value })
      end
    end
    private_constant :Choice
  end
  private_constant :Through

  class << self
    # @api private
    def __through(whole, name, args, options, block) = Through.call(whole, name, args, options, block)
  end
end
