# frozen_string_literal: true

module Ikra
  # Runs blocks that cannot be compiled as plain sequential Ruby, where the user asked for that.
  # @api private
  module Fallback
    ADVICE = "with unsupported: :ruby the block runs as plain Ruby"
    private_constant :ADVICE

    class << self
      # Raises +error+, or gives what its block gives, which runs the operation as plain Ruby.
      def run(error, options)
        # The module's own `raise`: a program may have removed that of all objects.
        ::Kernel.raise from_the_caller(error) unless plainly?(options)
        # Plain Ruby would number the elements of a slab from 0. It would change things twice if all elements are needed
        # later.
        ::Kernel.raise NeedsAll if options.key?(:__slab)

        Ikra.__warn("Ikra runs a block as plain Ruby:\n#{error.message}")
        Sections.wait_for_others
        outer = Thread.current[:__ikra_position]
        begin
          yield
        ensure
          Thread.current[:__ikra_position] = outer
        end
      end

      private

      # What Thread#raise or Timeout raises here waits, so that all that is raised is of what is asked.
      NEVER = { Object => :never }.freeze
      private_constant :NEVER

      def plainly?(options)
        Thread.handle_interrupt(NEVER) do
          options.fetch(:unsupported, Ikra.config.unsupported).to_s == "ruby"
        rescue ::StandardError
          # A program may have removed the methods called here.
          false
        end
      end

      def from_the_caller(error) = Thread.handle_interrupt(NEVER) { told_from_there(error) }

      # The error with a backtrace that begins where the user called, as if Ikra were a method of Ruby's own.
      def told_from_there(error)
        error = error.exception("#{error.message}\n\nInstead: #{ADVICE}") unless error.message.include?("\nInstead: ")
        error.set_backtrace(error.backtrace.reject { |frame| frame.start_with?(__dir__) })
        error
      rescue ::StandardError
        # A program may have redefined the methods called here. The error itself matters more.
        error
      end
    end
  end
  private_constant :Fallback

  # One call of a parallel method, as plain Ruby.
  # @api private
  class Plain
    # Ruby's names for methods, where they are not just the parallel names without +p+.
    NAMES = { pall?: :all?, pany?: :any?, pnone?: :none?, pone?: :one?, pmap!: :map! }.freeze
    OWN = %i[peach psort pmin_by pmax_by psort_by pnew pcombine pstencil pscan].freeze

    def initialize(base, name, block, args, offset)
      @base = base
      @name = name
      @block = block
      @args = args
      @offset = offset
      @index = -1
    end

    def value
      return __send__(@name, *@args) if OWN.include?(@name)

      name = NAMES.fetch(@name) { @name.to_s.delete_prefix("p").to_sym }
      # With an index, the base must be an Enumerator.
      @offset ? @base.public_send(name, *@args).with_index(@offset, &counted) : @base.public_send(name, *@args, &counted)
    end

    private

    # The block, with its calls counted for `Ikra.index`.
    def counted
      proc { |*values| run(@index += 1, 0, *values) }
    end

    def run(index, tick, *values)
      Thread.current[:__ikra_position] = Position.new(index, tick)
      @block.call(*values)
    end

    # Calls the block for an element and, where needed, its index.
    def call(index, *values)
      return run(index, 0, *values) unless @offset

      run(index, 0, values.size == 1 ? values.first : values, index + @offset)
    end

    def peach(ticks)
      ticks.times do |tick|
        @base.each_with_index do |element, index|
          @offset ? run(index, tick, element, index + @offset) : run(index, tick, element)
        end
      end
      @base
    end

    # A stable sort, unlike Ruby's own.
    def psort_by
      keys = @base.each_with_index.map { |element, index| call(index, element) }
      Operation.sorted(@base.to_a, keys)
    end

    def psort
      list = @base.to_a
      order = Operation.stable(list.size) { |i, j| Operation.compare(list[i], list[j]) { |one, other| run(i, 0, one, other) } }
      order.map { |index| list[index] }
    end

    def pmin_by(count = nil) = extreme(:min_by, count)

    def pmax_by(count = nil) = extreme(:max_by, count)

    def extreme(name, count)
      block = proc { |element| call(@index += 1, element) }
      count ? @base.public_send(name, count, &block) : @base.public_send(name, &block)
    end

    def pnew(*sizes)
      cells(sizes)
    end

    def cells(sizes, *at)
      return call(@index += 1, *at) if sizes.empty?

      Array.new(sizes.first) { |here| cells(sizes.drop(1), *at, here) }
    end

    def pcombine(*others)
      @base.each_with_index.map { |element, index| call(index, element, *others.map { |other| other.is_a?(Range) ? other.first(index + 1)[index] : other[index] }) }
    end

    def pscan(*start)
      memo = start.first
      none = start.empty?
      @base.each_with_index.map do |element, index|
        memo = none && index.zero? ? element : run(index, 0, memo, element)
      end
    end

    def pstencil(offsets, fill)
      stencil = Stencil.new(@base, offsets)
      form = stencil.form(@block, @offset)
      values = Array.new(stencil.list.size) do |index|
        next fill unless stencil.inside?(index)
        next call(index, stencil.around(index)) if form == :relative

        around = stencil.offsets.map { |offset| stencil.list[index + offset] }
        form == :each ? call(index, *around) : call(index, around)
      end
      stencil.nested(values)
    end
  end
  private_constant :Plain
end
