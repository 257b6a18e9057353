# frozen_string_literal: true

module Ikra
  # Ruby's numbers as operands of array operators.
  class MDArray
    # Replaces an Integer that elements are compared with by a number of a kernel's kind, with the same result.
    # @api private
    module Compared
      # The comparison with exchanged operands.
      MIRRORED = { :< => :>, :<= => :>=, :> => :<, :>= => :<=, eq: :eq, ne: :ne }.freeze

      class << self
        def with(name, value, dtype)
          beyond = value.positive? ? Float::INFINITY : -Float::INFINITY
          return DType::LIMITS.fetch(:i64).cover?(value) ? value : beyond if DType.integer?(dtype)

          float = value.bit_length > Float::MAX_EXP ? beyond : value.to_f
          float == value ? float : between(name, value, float)
        end

        private

        # For an Integer that equals no Float: a comparison with a Float next to it.
        def between(name, value, float)
          low, high = float > value ? [float.prev_float, float] : [float, float.next_float]
          case name
          when :<, :>= then high
          when :<=, :> then low
          else Float::NAN
          end
        end
      end
    end
    private_constant :Compared

    # A number before an operator: the 2 of +2 * array+.
    # @api private
    class Before
      def initialize(value)
        @value = value
      end

      (Operators::BINARY + Operators::BITS + Operators::COMPARISONS.keys + Operators::MATH[2] + %i[minimum maximum]).each do |name|
        define_method(name) { |array| array.__send__(:combined_behind, name, @value) }
      end

      private

      def method_missing(name, *) = raise(TypeError, "#{name} of a number takes no #{MDArray}")

      def respond_to_missing?(*) = false
    end
    private_constant :Before
  end
end
