# frozen_string_literal: true

module Ikra
  class Sections
    # Between the thread of one section and the sections that it belongs to.
    # @api private
    class Gate
      # What the section writes (`Ikra::Footprint`).
      attr_reader :footprints, :sections
      # The method that was called, and the path and line of the call. nil where nobody measures.
      attr_reader :called_at

      def initialize(sections, section, single)
        @sections = sections
        @section = section
        @single = single
        @footprints = []
        @events = Thread::Queue.new
        @turns = Thread::Queue.new
        @ended = Thread::Queue.new
        # The Fiber whose profile the section belongs to.
        @profiled = Ikra.__profiled
        @called_at = Ikra.__caller if @profiled
      end

      # Runs the work on a thread of its own, and yields its value and its error there.
      def start(work, &ended)
        Thread.new do
          Thread.current.report_on_exception = false
          Thread.current.abort_on_exception = false
          Thread.current[:__ikra_gate] = self
          run(work, &ended)
        end
      end

      # On the section's thread.
      def run(work)
        @began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        Thread.handle_interrupt(Object => :never) do
          Ikra.__profile_start if @profiled
          begin
            value = Thread.handle_interrupt(Object => :immediate) { attempt(work) }
          rescue Exception => raised # rubocop:disable Lint/RescueException
            error = raised
          end
          Ikra.__profile_give(@profiled) if @profiled
          @footprints.clear
          @sections.trace&.ran(@section, @began, @computed || Process.clock_gettime(Process::CLOCK_MONOTONIC))
          yield value, error
          @events << :ended
          @ended.close
        end
      end

      # Asked by the section's thread, from here on.

      def queued(*) = nil

      def resumes? = false

      def writers = @sections.writers_before(@section)

      def traces? = !@sections.trace.nil?

      def met(footprint, reason) = @sections.trace.met(footprint, @section, reason)

      # Waits until sections before it have written. Where the caller has gone on, that is when this one may write.
      def finish_before
        return if @has_turn

        @events << :blocked
        take_turn
        @has_turn = @is_left
      end

      # Before plain Ruby reads objects.
      def before_ruby = finish_before

      # Waits for another section, whose value the block has captured.
      def finish(section)
        finish_before
        raise ThreadError, "a section waits for itself, or for one that is called after it" unless section.ended?
      end

      # @return [Boolean] whether the caller goes on, as objects may change from now on
      def packed(footprint, once, now, *)
        @footprints << footprint if footprint
        @now ||= now
        left = once && @single && !@is_left
        @is_left ||= left
        @events << :packed if left
        left
      end

      # Waits until this section may write.
      def turn
        return if @has_turn

        @computed = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        @section.computed
        @events << :computed
        take_turn
        @has_turn = true
      end

      # Asked by the caller's thread, from here on.

      # The next thing that happens to the section.
      def event = @section.ended? ? :ended : @events.pop

      def go_on = @turns << :go

      def writes_now? = @now

      def computed? = false

      # The section writes, and ends.
      def write
        @turns << :go
        @ended.pop
      end

      # The thread says when it ran.
      def span = nil

      # The section ends, with this error, and writes nothing.
      def stop(error)
        @stopped = true
        @thread&.raise(Cancelled) unless @has_turn
        @turns << :stop
        @ended.pop
        @section.ended(nil, error)
      end

      # Whether the section has computed everything within so many seconds.
      def wait(seconds)
        till = seconds && (Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds)
        until @section.done?
          left = till && (till - Process.clock_gettime(Process::CLOCK_MONOTONIC))
          return false if left && !left.positive?

          sleep([left || 0.001, 0.001].min)
        end
        true
      end

      private

      def attempt(work)
        @thread = Thread.current
        raise Cancelled if @stopped

        work.call
      rescue StandardError
        # Perhaps only as sections before it have not written yet.
        raise if @stopped || @is_left || @has_turn || writers.empty?

        finish_before
        work.call
      end

      def take_turn
        Sections.waiting { @turns.pop }
        raise Cancelled if @stopped
      end
    end
    private_constant :Gate
  end
end
