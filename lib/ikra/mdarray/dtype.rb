# frozen_string_literal: true

module Ikra
  class MDArray
    # The kinds of elements: what they hold, and the result of an operator on two of them.
    # @api private
    module DType
      # Bytes of an element.
      SIZES = { i64: 8, i32: 4, u8: 1, f64: 8, f32: 4, bool: 1 }.freeze
      LIMITS = { i64: -(2**63)..((2**63) - 1), i32: -(2**31)..((2**31) - 1), u8: 0..255 }.freeze
      # The kinds of Integers, from the narrowest.
      INTEGERS = %i[u8 i32 i64].freeze
      FLOATS = %i[f32 f64].freeze

      class << self
        # @raise [ArgumentError] for an unknown kind; the message names the known ones
        def check(dtype)
          known = dtype.is_a?(String) ? dtype.to_sym : dtype
          return known if SIZES.key?(known) || known == :object

          raise ArgumentError, "dtype: #{dtype.inspect} is not one of #{(SIZES.keys + %i[object]).map(&:inspect).join(", ")}"
        end

        def integer?(dtype) = INTEGERS.include?(dtype)

        def float?(dtype) = FLOATS.include?(dtype)

        def number?(dtype) = integer?(dtype) || float?(dtype)

        # The kind that holds a Ruby value.
        def of(value)
          case value
          when Integer then :i64
          when Float then :f64
          when true, false then :bool
          else :object
          end
        end

        # The kind that an operator on two kinds of numbers gives: the wider; f64 for Integers of 32 or 64 bits with
        # f32.
        def common(one, other)
          return one if one == other
          return [one, other].max_by { |dtype| INTEGERS.index(dtype) } if integer?(one) && integer?(other)

          [one, other].sort == %i[f32 u8] ? :f32 : :f64
        end

        # The same where the other operand is a Ruby number, which takes the array's kind where it can.
        def with(dtype, value) = value.is_a?(Float) && integer?(dtype) ? :f64 : dtype

        # The value as an element of a kind stores it.
        #
        # @raise [RangeError, FloatDomainError, TypeError] for a value that the kind cannot hold
        def store(dtype, value)
          case dtype
          when :object then value
          when :bool
            raise TypeError, "#{shown(value)} is neither true nor false" unless value.equal?(true) || value.equal?(false)

            value
          when :f64, :f32
            raise TypeError, "#{shown(value)} is not a number" unless value.is_a?(Numeric)

            value = value.to_f
            dtype == :f32 ? single(value) : value
          else store_integer(dtype, value)
          end
        end

        # The nearest Float of 32 bits.
        def single(value) = Ikra.__single(value)

        def shown(value)
          text = value.nil? || value.is_a?(Numeric) || value.is_a?(Symbol) || value.equal?(true) || value.equal?(false) ? value.inspect : "an object of #{value.class}"
          text.size > 40 ? "#{text[0, 40]}…" : text
        end

        private

        def store_integer(dtype, value)
          raise TypeError, "#{shown(value)} is not a number" unless value.is_a?(Numeric)

          # A Complex has no truncate, and its own error says that it is no Integer.
          value = value.is_a?(Complex) ? value.to_i : value.truncate
          limits = LIMITS.fetch(dtype)
          raise RangeError, "#{shown(value)} does not fit #{dtype} (#{limits.begin} to #{limits.end})" unless limits.cover?(value)

          value
        end
      end
    end
    private_constant :DType

    # Raised in a kernel for a value that the elements cannot hold. The caller gets a RangeError with the index.
    # @api private
    class Unfit < RangeError
    end
  end
end
