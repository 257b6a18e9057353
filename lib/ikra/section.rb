# frozen_string_literal: true

module Ikra
  # A section was cancelled before it had written anything.
  class Cancelled < StandardError
    include Error
  end

  # A call of a parallel method that may run beside others. {Ikra.concurrently} makes them, and {Parallel#async}.
  #
  # The answer is that of sequential Ruby. The section takes its inputs at its call. It writes to objects where its
  # value is asked for, at the end of {Ikra.concurrently}, or before another section of the Fiber that reads what it
  # writes. Ruby that looks at these objects meanwhile sees them as they were.
  class Section
    # @api private
    # The name of the method that made it.
    attr_reader :operation

    # @api private
    # What makes it.
    attr_reader :work

    # @api private
    # What it tells how far it is.
    attr_accessor :gate

    # @api private
    def initialize(group, operation, block = nil, &work)
      @group = group
      @operation = operation
      @block = block
      @work = work
      @state = :waits
    end

    # @api private
    # The path and line of its block.
    def place = @block&.source_location

    # What the call gives. Sections before it write to objects first, and then this one.
    #
    # @return [Object]
    # @raise what the section raises, or one before it; {Cancelled} after {#cancel}
    def value
      @group.finish(self) unless ended?
      raise @failure if @failure

      @value
    end

    # @return [Boolean] whether nothing is left to compute
    def done? = @state == :ended || @state == :computed || (@state == :runs && @gate&.computed?) || false

    # Waits until nothing is left to compute.
    #
    # @param seconds [Numeric, nil] for so long at most
    # @return [self, nil] nil where the time is over
    def wait(seconds = nil) = @group.wait(self, seconds)

    # Ends the section. Nothing of it is written, and {#value} raises {Cancelled}.
    #
    # @return [Boolean] false where the section has ended already
    def cancel = @group.cancel(self)

    # Where everything is computed, writes to objects as {#value} does, and does not raise.
    #
    # @return [Exception, nil] what {#value} raises; nil where it raises nothing, or before {#done?}
    def error
      @group.finish(self) if done? && !ended?
      @failure
    end

    # A section whose value is that of the block. The block runs in this section's place: sections after it wait.
    #
    # @yieldparam value [Object] this section's value
    # @return [Section]
    def then(&block)
      raise ArgumentError, "no block" unless block

      @group.after(self, block)
    end

    # @return [String]
    def inspect = "#<#{self.class} #{@operation} #{@state == :runs && done? ? :computed : @state}>"

    # The parallel methods of its value.
    Parallel.public_instance_methods(false).each do |name|
      define_method(name) { |*args, **options, &block| value.public_send(name, *args, **options, &block) }
    end

    # @api private
    def ended? = @state == :ended

    # @api private
    # The exception of a section that has ended.
    attr_reader :failure

    # @api private
    # Whether it has begun, and is not known to have ended.
    def under_way? = @state == :runs || @state == :computed

    # @api private
    def ended(value, error = nil)
      @value = value
      @failure = error
      @state = :ended
      @work = @gate = nil
    end

    # @api private
    # Runs where it is called.
    def run
      @state = :runs
      value = @work.call
    rescue Exception => error # rubocop:disable Lint/RescueException
      ended(nil, error)
    else
      ended(value)
    end

    # @api private
    def begun(gate)
      @gate = gate
      @state = :runs
    end

    # @api private
    def computed = @state = :computed
  end
end
