# frozen_string_literal: true

module Ikra
  # Blocks that cannot be compiled, run as plain sequential Ruby where the user asked for that.
  # @api private
  module Fallback
    class << self
      # Raises +error+, or gives the section's value.
      def run(error, operation, base, ticks, options, block)
        raise from_the_caller(error) unless options.fetch(:unsupported, Ikra.config.unsupported).to_s == "ruby"

        warn(error)
        outer = Thread.current[:__ikra_position]
        operation == :map ? map(base, block) : each(base, ticks, block)
      ensure
        Thread.current[:__ikra_position] = outer if outer || !error.nil?
      end

      private

      # The error with a backtrace that begins where the user called, as if Ikra were a method of Ruby's own.
      def from_the_caller(error)
        error.set_backtrace(error.backtrace.reject { |frame| frame.start_with?(__dir__) })
        error
      end

      def map(base, block)
        base.each_with_index.map do |element, index|
          at(index, 0)
          block.call(element)
        end
      end

      def each(base, ticks, block)
        ticks.times do |tick|
          base.each_with_index do |element, index|
            at(index, tick)
            block.call(element)
          end
        end
        base
      end

      def at(index, tick)
        Thread.current[:__ikra_position] = Position.new(index, tick)
      end

      def warn(error)
        Ikra.__warn("Ikra runs a block as plain Ruby:\n#{error.message}")
      end
    end
  end
  private_constant :Fallback
end
