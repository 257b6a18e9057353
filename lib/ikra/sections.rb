# frozen_string_literal: true

require "monitor"

module Ikra
  # What the sections of one Fiber that run at once have in common: their order. Only one thread at a time is in here.
  # @api private
  class Sections
    # The most sections that have not ended. Each has a thread.
    MAX_UNFINISHED = 64
    # Methods that run one section over objects, and read none afterwards.
    SINGLE = %i[pmap peach pselect preject ppartition pfilter_map pflat_map pcount psum pgroup_by psort_by puniq pcombine pzip pnew].freeze
    VARIABLE = :__ikra_gate
    POLICIES = %i[auto serial].freeze
    private_constant :MAX_UNFINISHED, :SINGLE, :VARIABLE

    class << self
      # The sections of this Fiber. nil where it has none that have not ended, and on the thread of a section.
      def current
        gate = Thread.current[VARIABLE]
        gate if gate.is_a?(self)
      end

      # The sections of this Fiber, new ones if need be.
      def open = current || new

      # Queues an operation, where this Fiber does. nil where the operation has to run now.
      def queued(operation, single: SINGLE.include?(operation), &work) = current&.add_queued(operation, single, &work)

      # Before plain Ruby reads objects: sections before it write what they have computed.
      def wait_for_others = Thread.current[VARIABLE]&.finish_before

      # A whole call of +pmap+ or +peach+.
      def call(operation, base, ticks, options, block)
        return Parallel.instance_method(:peach).bind_call(base, ticks, **options, &block) if operation == :peach

        Parallel.instance_method(operation).bind_call(base, **options, &block)
      end

      # The block's value, with the values of sections in place of sections.
      def replaced(value, seen = {}.compare_by_identity)
        case value
        when Section then value.value
        when Array, Hash
          return value if seen[value]

          seen[value] = true
          return value.map { |one| replaced(one, seen) } if value.instance_of?(Array)

          value.instance_of?(Hash) ? value.transform_values { |one| replaced(one, seen) } : value
        else value
        end
      end
    end

    def initialize
      @unfinished = []
      @depth = 0
      @lock = Monitor.new
      @gates = {}.compare_by_identity
    end

    # What {Ikra.concurrently} does.
    def within(policy, &block)
      outer, @policy = @policy, policy
      enter
      @depth += 1
      value = completing(&block)
      @depth == 1 ? (finish_all && Sections.replaced(value)) : value
    ensure
      @depth -= 1
      @policy = outer
      leave
    end

    # A section that may run beside others. +single+: it runs one section over objects, and reads none afterwards.
    def add(operation, single = SINGLE.include?(operation), &work)
      section = Section.new(self, operation, &work)
      @lock.synchronize do
        enter
        finish_deferred
        if @failure then section.ended(nil, @failure)
        elsif serial? then run_now(section)
        else begin_section(section, single)
        end
      end
      section
    ensure
      leave
    end

    # The section of an operation within {Ikra.concurrently}. nil elsewhere.
    def add_queued(operation, single, &work)
      add(operation, single, &work) if @depth.positive?
    end

    # What +__section+ asks for a whole call of +pmap+ or +peach+.
    def queued(operation, base, ticks, options, block)
      return if @depth.zero?

      options ||= {}
      add(operation) { Sections.call(operation, base, ticks, options, block) }
    end

    # A section that runs a block with the value of another one.
    def after(before, block)
      section = Section.new(self, :then) do
        value = block.call(before.value)
        value.is_a?(Section) ? value.value : value
      end
      @lock.synchronize do
        enter
        @failure ? section.ended(nil, @failure) : @unfinished << section
      end
      section
    ensure
      leave
    end

    # Sections up to this one write what they have computed.
    def finish(section)
      own = Thread.current[VARIABLE]
      return own.finish(section) if own.is_a?(Gate)

      @lock.synchronize { finish_first until section.ended? }
    ensure
      leave
    end

    def wait(section, seconds)
      return section if section.done?
      return section.tap { finish(section) } unless section.under_way?

      @gates[section].wait(seconds) ? section : nil
    end

    def cancel(section)
      @lock.synchronize do
        return false unless @unfinished.delete(section)

        stop(section, Cancelled.new("#{section.operation} was cancelled"))
      end
      leave
      true
    end

    # What the gate of a section asks: the footprints of sections before it that have not ended.
    def writers_before(section) = @unfinished.take_while { |other| !other.equal?(section) }.flat_map { |other| @gates[other]&.footprints || [] }

    # Of sections that run on this Fiber while others have not ended.
    def writers = @unfinished.flat_map { |section| @gates[section]&.footprints || [] }

    def finish_before = finish_all

    def packed(*) = false

    def turn = nil

    private

    def serial? = @policy == :serial || Ikra.__resident? || Ikra.__measured? || Ikra.__explaining?

    # Runs the block of {Ikra.concurrently}. Where it is left in another way than by its end, sections that were called
    # before are completed, as sequential Ruby would have run them.
    def completing
      completed = false
      value = yield
      completed = true
      value
    rescue Exception => error # rubocop:disable Lint/RescueException
      completed = true
      @interrupted || error.is_a?(SignalException) ? cancel_all : (finish_all if @depth == 1)
      raise
    ensure
      # After a break or a throw.
      finish_all if !completed && @depth == 1
    end

    # While there are sections that have not ended, sections of the Fiber report to their gates.
    def enter
      return if @entered

      @entered = true
      Thread.current[VARIABLE] = self
      Ikra.__gates(1)
    end

    def leave
      return unless @entered && @depth.zero? && @unfinished.empty?

      @entered = @interrupted = false
      @failure = nil
      Ikra.__gates(-1)
      Thread.current[VARIABLE] = nil if Thread.current[VARIABLE].equal?(self)
    end

    def run_now(section)
      finish_all
      within_none { section.run }
      @failure = section.error
    end

    # Runs the block without this gate.
    def within_none
      Thread.current[VARIABLE] = nil
      yield
    ensure
      Thread.current[VARIABLE] = self
    end

    def begin_section(section, single)
      finish_first if @unfinished.size >= MAX_UNFINISHED
      @unfinished << section
      gate = @gates[section] = Gate.new(self, section, single)
      section.start(gate)
      follow(section, gate)
    end

    # Waits until the section needs objects no more as they are.
    def follow(section, gate)
      while gate.event == :blocked
        finish_first until section.ended? || @unfinished.first.equal?(section)
        gate.go_on
      end
      finish(section) if gate.writes_now?
    rescue Exception # rubocop:disable Lint/RescueException
      interrupted
      raise
    end

    # Blocks of {Section#then} run before later sections do.
    def finish_deferred
      last = @unfinished.rindex { |section| section.operation == :then } or return
      (last + 1).times { finish_first }
    end

    def finish_all
      finish_first until @unfinished.empty?
      raise @failure if @failure

      true
    end

    def finish_first
      section = @unfinished.first
      gate = @gates[section]
      if gate
        gate.write
        @gates.delete(section)
        @unfinished.shift
      else
        # Sections that its block calls come in its place.
        @unfinished.shift.run
      end
      fail_from(section.error) if section.error
    rescue Exception # rubocop:disable Lint/RescueException
      interrupted
      raise
    end

    # A section raised: later ones write nothing.
    def fail_from(error)
      @failure = error
      stop(@unfinished.shift, error) until @unfinished.empty?
    end

    def stop(section, error)
      gate = @gates.delete(section)
      gate ? gate.stop(error) : section.ended(nil, error)
    end

    # Nothing that has not ended changes anything.
    def interrupted
      @interrupted = true
      cancel_all
    end

    def cancel_all
      until @unfinished.empty?
        section = @unfinished.shift
        stop(section, Cancelled.new("#{section.operation} was interrupted"))
      end
    end
  end
  private_constant :Sections
end
