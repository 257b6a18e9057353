# frozen_string_literal: true

require "monitor"

module Ikra
  # What the sections of one Fiber that run at once have in common: their order. Only one thread at a time is in here.
  # @api private
  class Sections
    # The most sections that have not ended. Some have a thread, and all have memory.
    MAX_UNFINISHED = 64
    # How often a call runs on a thread of Ruby's before it tries to do without.
    THREADS = 15
    # The most places whose calls need a thread of Ruby's, and the most blocks that gain nothing from several lanes.
    MAX_PLACES = 1024
    # After how many calls such a block is tried again.
    TRIES = 16
    # Methods that run one section over objects, and read none afterwards.
    SINGLE = %i[pmap peach pselect preject ppartition pfilter_map pflat_map pcount psum pgroup_by psort_by puniq pcombine pzip pnew].freeze
    # Methods whose value a section alone gives.
    WHOLE = %i[pmap peach].freeze
    EACH = Parallel.instance_method(:peach)
    MAP = Parallel.instance_method(:pmap)
    VARIABLE = :__ikra_gate
    POLICIES = %i[auto paper plain serial].freeze
    CHECKS = [nil, :races].freeze
    private_constant :MAX_UNFINISHED, :THREADS, :MAX_PLACES, :TRIES, :SINGLE, :WHOLE, :EACH, :MAP, :VARIABLE

    class << self
      # The sections of this Fiber. nil where it has none that have not ended, and on the thread of a section.
      def current
        gate = Thread.current[VARIABLE]
        gate if gate.is_a?(self)
      end

      # Whether this Fiber has no sections, so that a call need not wait for its turn.
      def none? = Thread.current[VARIABLE].nil?

      # The sections of this Fiber, new ones if need be.
      def open = current || new

      # Queues an operation, where this Fiber does. nil where the operation has to run now.
      def queued(operation, single: SINGLE.include?(operation), block: nil, &work)
        current&.add_queued(operation, single, block, &work)
      end

      # Before plain Ruby reads objects: sections before it write what they have computed.
      def wait_for_others = Thread.current[VARIABLE]&.before_ruby

      # Where the section was called that this thread runs.
      def called_at
        gate = Thread.current[VARIABLE]
        gate.called_at if gate.is_a?(Gate)
      end

      # Waits for other sections. A profile counts that time for these, not for what runs here.
      def waiting
        waits = Ikra.__waits
        yield
      ensure
        Ikra.__waited if waits
      end

      # A whole call of +pmap+ or +peach+.
      def call(operation, base, ticks, options, block)
        return EACH.bind_call(base, ticks, **options, &block) if operation == :peach

        MAP.bind_call(base, **options, &block)
      end

      # Whether a call runs on a thread of Ruby's, as one of its place had to before.
      def on_thread?(section)
        return false if @on_threads.nil?

        place = [section.operation, *section.place]
        calls = @on_threads[place] || 0
        @on_threads[place] = calls - 1 if calls.positive?
        calls.positive?
      end

      # The next calls of a place do.
      def on_thread(section)
        @on_threads = {} if @on_threads.nil? || @on_threads.size >= MAX_PLACES
        @on_threads[[section.operation, *section.place]] = THREADS
      end

      # Whether sections of a block of {Ikra.concurrently} gained too little from lanes. Then short kernels run on the
      # caller's thread.
      def here?(block)
        return false if @unprofitable.nil?

        place = block.source_location
        calls = @unprofitable[place] or return false
        @unprofitable[place] = calls - 1
        return true if calls.positive?

        @unprofitable.delete(place)
        false
      end

      # What kernels of a block's sections take: each alone, and each if it filled the machine.
      def learn(block, members)
        return if members.size < 2 || Ikra.__pays(members)

        @unprofitable = {} if @unprofitable.nil? || @unprofitable.size >= MAX_PLACES
        @unprofitable[block.source_location] = TRIES
      end

      # The block's value, with the values of sections in place of sections. What has none is given as it is.
      def replaced(value, seen = {}.compare_by_identity)
        return value.value if value.is_a?(Section)
        return value unless (value.instance_of?(Array) || value.instance_of?(Hash)) && !seen[value]

        seen[value] = true
        value.is_a?(Array) ? replaced_list(value, seen) : replaced_values(value, seen)
      end

      private

      def replaced_list(list, seen)
        # Mostly it has neither, and these loops are those of Ruby's own code.
        return list unless list.any?(Section) || list.any?(Enumerable)

        new = nil
        at = 0
        while at < list.size
          case one = list[at]
          when Section, Array, Hash
            other = replaced(one, seen)
            (new ||= list.dup)[at] = other unless other.equal?(one)
          end
          at += 1
        end
        new || list
      end

      def replaced_values(hash, seen)
        values = hash.transform_values { |one| replaced(one, seen) }
        hash.all? { |key, one| values[key].equal?(one) } ? hash : values
      end
    end

    def initialize
      @unfinished = []
      @depth = 0
      @lock = Monitor.new
    end

    # What a section has raised. Later ones write nothing.
    attr_reader :failure
    # What notes when sections run. nil where nobody wants that.
    attr_reader :trace

    # What {Ikra.concurrently} does.
    def within(policy, check, path, &block)
      outer, @policy = @policy, policy
      traced, @trace = @trace, Trace.new if path
      begin_outer(policy, block) if @depth.zero?
      enter
      @depth += 1
      value = completing { check ? Races.new(self).watch(&block) : block.call }
      @depth == 1 ? end_outer(value, block) : value
    ensure
      @depth -= 1
      @policy = outer
      @here = @members = nil if @depth.zero?
      if path
        @trace.write(path)
        @trace = traced
      end
      leave
    end

    # A section that may run beside others. +single+: it runs one section over objects, and reads none afterwards.
    # +block+: the user's.
    def add(operation, single: SINGLE.include?(operation), block: nil, &work)
      section = Section.new(self, operation, block, &work)
      @lock.synchronize do
        enter
        finish_deferred
        if @failure then section.ended(nil, @failure)
        elsif @trace then @trace.called(section) { run(section, single) }
        else run(section, single)
        end
      end
      section
    ensure
      leave
    end

    # The section of an operation within {Ikra.concurrently}. nil elsewhere.
    def add_queued(operation, single, block, &work)
      add(operation, single: single, block: block, &work) if @depth.positive?
    end

    # What +__section+ asks for a whole call of +pmap+ or +peach+.
    def queued(operation, base, ticks, options, block)
      return if @depth.zero?

      options ||= {}
      add(operation, block: block) { Sections.call(operation, base, ticks, options, block) }
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
      return own.finish(section) if (own.is_a?(Gate) || own.is_a?(Inline)) && own.sections.equal?(self)

      finish_until(section)
    ensure
      leave
    end

    def finish_until(section)
      @lock.synchronize do
        until section.ended?
          raise ThreadError, "a section waits for itself, or for one that is called after it" unless @unfinished.include?(section)

          finish_first
        end
      end
    end

    def wait(section, seconds)
      return section if section.done?
      return section.tap { finish(section) } unless section.under_way?

      section.gate&.wait(seconds) == false ? nil : section
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
    def writers_before(section) = footprints(@unfinished.take_while { |other| !other.equal?(section) })

    # Of sections that run on this Fiber while others have not ended.
    def writers = footprints(@unfinished)

    # Before a scope of {Ikra.resident} ends by an exception: sections that were called before are completed.
    def settle
      finish_first until @unfinished.empty?
    ensure
      leave
    end

    # Whether each section has a thread, however short it is.
    def plain? = @policy == :plain

    # How a section goes on whose caller does not wait for it: beside the caller if its kernel is long. +:here+: on the
    # caller's thread, if it is short. Inline says what +:lane+ and +:held+ are.
    def leaving
      case @policy
      when :plain then :lane
      when :paper
        @holds = true
        :held
      else @here ? :here : true
      end
    end

    # Kernels that wait for a plan begin.
    def release
      @lock.synchronize { release_held } if @holds
    end

    def each_unfinished = @unfinished.each

    def finish_before = finish_all

    def before_ruby
      finish_all
    ensure
      leave
    end

    def resumes? = false

    def traces? = false

    def packed(*) = false

    def turn = nil

    def ran(*) = nil

    private

    def begin_outer(policy, block)
      @explained = []
      auto = policy == :auto
      @here = auto && Sections.here?(block)
      @members = auto && !@here ? [] : nil
    end

    def end_outer(value, block)
      finish_all
      Sections.learn(block, @members) if @members
      Sections.replaced(value)
    end

    def release_held
      @holds = false
      Ikra.__release(@unfinished.filter_map { |section| section.gate.submitted if section.gate.is_a?(Inline) })
    end

    def footprints(sections) = sections.flat_map { |section| section.gate&.footprints || [] }

    def run(section, single) = serial? ? run_now(section) : begin_section(section, single)

    def serial? = @policy == :serial || Ikra.__explaining?

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
      gate = watch(section) if @depth.positive? && Ikra.__explaining?
      with_gate(gate) { section.run }
      @failure = section.failure
    end

    def watch(section)
      watch = Watch.new(@explained.map(&:last), @policy == :paper && WHOLE.include?(section.operation))
      Ikra.__together(@explained) if @explained.empty?
      @explained << [section.operation, section.place, watch]
      watch
    end

    # Runs the block with another gate than this one.
    def with_gate(gate)
      Thread.current[VARIABLE] = gate
      yield
    ensure
      Thread.current[VARIABLE] = self
    end

    def begin_section(section, single)
      finish_first if @unfinished.size >= MAX_UNFINISHED
      whole = WHOLE.include?(section.operation)
      return if (whole || !(plain? || Ikra.__resident?)) && run_inline(section)

      # Another thread has no scope.
      Ikra.__resident? ? run_now(section) : on_thread(section, single)
    rescue Exception # rubocop:disable Lint/RescueException
      interrupted
      raise
    end

    # Runs a section that needs no thread of Ruby's. Returns whether it is one.
    def run_inline(section)
      return false if Sections.on_thread?(section)

      inline = Inline.new(self, section, WHOLE.include?(section.operation))
      unless with_gate(inline) { inline.run(section.work) }
        Sections.on_thread(section)
        return false
      end
      section.begun(inline)
      @failure ? inline.stop(@failure) : @unfinished << section
      finish(section) if inline.writes_now?
      true
    end

    def on_thread(section, single)
      @unfinished << section
      gate = Gate.new(self, section, single)
      section.begun(gate)
      gate.start(section.work) { |value, error| section.ended(value, error) }
      follow(section, gate)
    end

    # Waits until the section needs objects no more as they are.
    def follow(section, gate)
      while gate.event == :blocked
        finish_first until section.ended? || @unfinished.first.equal?(section)
        gate.go_on
      end
      finish(section) if gate.writes_now?
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
      release_held if @holds
      section = @unfinished.first
      if section.gate || section.ended?
        gate = section.gate
        @trace ? @trace.writes(section) { gate&.write } : gate&.write
        @unfinished.shift
        note(gate) if @members && gate.is_a?(Inline)
      else
        # Sections that its block calls come in its place.
        @unfinished.shift.run
      end
      fail_from(section.failure) if section.failure
      completed = true
    ensure
      # Also after a throw, as that of Timeout.
      interrupted unless completed
    end

    # What its kernel took.
    def note(gate)
      member = gate.submitted&.member
      @members << member if member
    end

    # A section raised: later ones write nothing.
    def fail_from(error)
      @failure = error
      stop(@unfinished.shift, error) until @unfinished.empty?
    end

    def stop(section, error)
      return if section.ended?

      section.gate ? section.gate.stop(error) : section.ended(nil, error)
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
