# frozen_string_literal: true

module Ikra
  class Sections
    # A section needs a thread of Ruby's after all: it has done nothing yet.
    # @api private
    class Aborted < Exception # rubocop:disable Lint/InheritException
    end

    # A section that runs inline, on the caller's thread, as far as it needs Ruby: it packs there. A short kernel runs
    # there, too, and a longer one on a thread without Ruby (`Ikra::Submitted`).
    # @api private
    class Inline
      # What a section does not raise itself. Other threads may raise something only where it waits for other sections.
      INTERRUPTS = [SignalException, SystemExit].freeze
      MASK = { Exception => :never }.freeze
      WAITS = { Exception => :immediate }.freeze
      # The longest kernel, in seconds, that keeps the caller's thread.
      SHORT = 0.001
      private_constant :INTERRUPTS, :MASK, :WAITS, :SHORT

      # What the section writes (`Ikra::Footprint`).
      attr_reader :footprints, :sections

      def initialize(sections, section, whole)
        @sections = sections
        @section = section
        @whole = whole
        @footprints = []
      end

      # Runs the work up to where it can wait.
      #
      # @return [Boolean] false where it needs a thread
      def run(work)
        @value = Thread.handle_interrupt(MASK) { attempt(work) }
        @submitted = @value if @value.is_a?(Submitted)
        true
      rescue Aborted
        false
      rescue *INTERRUPTS
        raise
      rescue Exception => error # rubocop:disable Lint/RescueException
        raise if error.equal?(@interrupt)

        @error = error
        true
      end

      def queued(*) = nil

      def resumes? = @whole

      def writers = @sections.writers

      # Whether all sections before it have ended.
      def alone? = @sections.each_unfinished.none?

      def traces? = !@sections.trace.nil?

      def met(footprint, reason) = @sections.trace.met(footprint, @section, reason)

      # Waits until sections before it have written.
      def finish_before
        Sections.waiting { Thread.handle_interrupt(WAITS) { @sections.finish_before } }
      rescue Exception => error # rubocop:disable Lint/RescueException
        @interrupt = error unless error.equal?(@sections.failure)
        raise
      end

      def before_ruby = raise(Aborted)

      # Another section, whose value the block has captured, writes.
      def finish(section)
        Sections.waiting { Thread.handle_interrupt(WAITS) { @sections.finish_until(section) } }
      rescue Exception => error # rubocop:disable Lint/RescueException
        @interrupt = error unless error.is_a?(ThreadError)
        raise
      end

      # @return [Boolean, Symbol] whether the caller may go on while the kernel runs; +:lane+ where it does, even for a
      #   short one; +:held+ where the kernel waits for a plan
      def packed(footprint, once, now, time, resumable)
        leaves = resumable && once
        raise Aborted unless leaves || (time && time < SHORT && (resumable || (footprint.nil? && !now)))

        @footprints << footprint if footprint
        @now ||= now
        return leaves unless leaves

        way = @sections.leaving
        way == :here ? time.nil? || time >= SHORT : way
      end

      # Asked by the caller's thread, from here on.

      def writes_now? = @now

      def computed?
        @sections.release
        @submitted.nil? || @submitted.computed?
      end

      # What may wait for a plan.
      attr_reader :submitted

      # The section writes, and ends.
      def write
        @submitted&.wait(nil)
        begin
          @value = Thread.handle_interrupt(MASK) { @submitted.finish } if @submitted
        rescue *INTERRUPTS
          raise
        rescue Exception => error # rubocop:disable Lint/RescueException
          @error = error
        end
        @section.ended(@value, @error)
      end

      # When its kernel began, and ended. nil where that was on the caller's thread, during the call.
      def span
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @submitted&.span&.map { |ago| now - ago }
      end

      # The section ends, with this error, and writes nothing.
      def stop(error)
        @submitted&.cancel
        @section.ended(nil, error)
      end

      # Whether the section has computed everything within so many seconds.
      def wait(seconds)
        @sections.release
        @submitted.nil? || @submitted.wait(seconds)
      end

      private

      def attempt(work)
        work.call
      rescue StandardError => error
        # Perhaps only as sections before it have not written yet.
        raise if error.equal?(@interrupt) || @footprints.any? || writers.empty?

        finish_before
        work.call
      end
    end
    private_constant :Inline
  end
end
