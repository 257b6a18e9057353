# frozen_string_literal: true

module Ikra
  class MDArray
    # The elements that an array and its views share: a {Buffer}, or an Array of objects. `Ikra.__again`, which makes arrays of what blocks give, knows the
    # ivars of this class, of {Layout} and of {MDArray}.
    #
    # Pending expressions see the elements as they were when they were written down: they {#retain} the buffer, and who
    # writes while somebody does writes a copy, which takes its place here.
    # @api private
    class Storage
      # Set by the array that it belongs to, when that is frozen.
      attr_writer :read_only
      # The shape that an error of the section that makes it is told in.
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

      # The buffer, for as long as somebody may look at it.
      def retain
        return copied if apart?

        @retained += 1
        buffer
      end

      # The buffer, for somebody who will write to it later, without asking. It stays lent: a MemoryView may be released by the GC, which cannot tell
      # anybody, so elements are copied at once from then on where they would be shared.
      def lend
        lent = writable
        @lent = true
        lent
      end

      def release(buffer)
        @retained -= 1 if @retained.positive? && buffer.equal?(@buffer)
      end

      # The buffer, to be written.
      def writable
        return buffer unless @retained.positive?

        replace(copied)
      end

      # Puts new elements, of a buffer that nobody else has, in place of all. Where it turns out that they never came to be, these are there again, once
      # somebody was told.
      def supersede(buffer)
        # what was there is let go now, not when the GC comes by
        return buffer.succeed(self.buffer) unless @lent || @retained.positive?

        @lent ? buffer.settle : buffer.follow(self.buffer)
        return replace(buffer) if @retained.positive?

        @buffer.take_over(buffer)
        buffer.free
      end

      # Waits until the elements are there.
      #
      # @raise [ArgumentError] after {#free}
      def sync
        elements = buffer
        elements.sync unless @dtype == :object
      end

      # Whether the elements may yet be again what they were before.
      def unsure? = dtype != :object && buffer.may_come_back?

      # Puts new elements in place of all.
      def replace(buffer)
        @retained = 0
        return @buffer = buffer unless @lent

        @buffer.take_over(buffer)
        @buffer
      end

      # Another storage with the same elements; both copy them before they write.
      def share
        # asked once: a launch may end at any time, and then they are shared
        return Storage.new(copied, dtype) if apart?

        @retained += 1
        Storage.new(buffer, dtype, 1)
      end

      def free
        return unless @buffer

        # which is known afterwards, too
        numbers = dtype != :object
        @buffer.free if @retained.zero? && numbers
        @buffer = nil
      end

      # Whether nobody shares the buffer: who has it to write does so at a time of his own; and what comes of contents that never came to be never does, though the array has again
      # what it had.
      def apart? = @lent || unsure?

      def copied = dtype == :object ? buffer.dup : buffer.copy

      def bytesize = dtype == :object ? buffer.size * 8 : buffer.bytesize
    end
    private_constant :Storage
  end
end
