# frozen_string_literal: true

module Ikra
  class MDArray
    # The elements that an array and its views share: a {Buffer}, or an Array of objects. `Ikra.__fast_path`, which
    # makes arrays of blocks' values, knows the ivars of this class, of {Layout} and of {MDArray}.
    #
    # Pending expressions use the elements as they were when the expression was built: they {#retain} the buffer. A
    # write meanwhile goes to a copy, which takes the buffer's place here.
    # @api private
    class Storage
      # Set by its array, when that is frozen.
      attr_writer :read_only
      # The shape for the index of an error of the section that computes it.
      attr_accessor :shape

      def initialize(buffer, dtype, retained = 0)
        @buffer = buffer
        @dtype = dtype
        @retained = retained
      end

      def dtype = @dtype ||= @buffer.dtype

      # @raise [ArgumentError] after {#free}
      def buffer = @buffer || raise(ArgumentError, "the array's elements are freed")

      def read_only = @read_only == true

      def freed? = @buffer.nil?

      # The buffer, retained until it is not read any more.
      def retain
        return copied if apart?

        @retained += 1
        buffer
      end

      # The buffer, for a writer that will write it later without asking. It stays lent for good: the GC may release a
      # MemoryView, and cannot say so. So from then on elements are copied at once where they would be shared.
      def lend
        lent = writable
        @lent = true
        lent
      end

      def release(buffer)
        @retained -= 1 if @retained.positive? && buffer.equal?(@buffer)
      end

      # The buffer, for writing.
      def writable
        return buffer unless @retained.positive?

        replace(copied)
      end

      # Replaces all elements by those of a buffer that is not shared. Where their computation fails, the former
      # elements are there again, once the exception was raised.
      def supersede(buffer)
        # The former memory is freed now, not by the GC.
        return buffer.succeed(self.buffer) unless @lent || @retained.positive?

        @lent ? buffer.settle : buffer.follow(self.buffer)
        return replace(buffer) if @retained.positive?

        @buffer.take_over(buffer)
        buffer.free
      end

      # Waits until the elements are computed.
      #
      # @raise [ArgumentError] after {#free}
      def sync
        elements = buffer
        elements.sync unless @dtype == :object
      end

      # Whether the former elements may yet come back.
      def unsure? = dtype != :object && buffer.may_come_back?

      # Replaces all elements.
      def replace(buffer)
        @retained = 0
        return @buffer = buffer unless @lent

        @buffer.take_over(buffer)
        @buffer
      end

      # Another storage with the same elements. Both copy them before they write.
      def share
        # Asked only once: a launch may end at any time, and then the elements can be shared.
        return Storage.new(copied, dtype) if apart?

        @retained += 1
        Storage.new(buffer, dtype, 1)
      end

      def free
        return unless @buffer

        # Kept in a variable, because it is also needed afterwards.
        numbers = dtype != :object
        @buffer.free if @retained.zero? && numbers
        @buffer = nil
      end

      # Whether the buffer cannot be shared. A borrower may write it at any time. Where its computation fails, copies
      # never get contents, although this array has its former ones again.
      def apart? = @lent || unsure?

      def copied = dtype == :object ? buffer.dup : buffer.copy

      def bytesize = dtype == :object ? buffer.size * 8 : buffer.bytesize
    end
    private_constant :Storage
  end
end
