# frozen_string_literal: true

module Ikra
  class Lazy
    # One kernel of a chain over a list.
    # @api private
    class Kernel
      # The number of elements that are computed first where it is not known how many are needed. Each further part has
      # four times as many.
      FIRST = 256

      # The most elements of a part, because a section has memory for all its results.
      MAX_PART_ELEMENTS = 1 << 27

      # With fewer arrays, these may be long, and one thread would go over each (or over a chunk of them, where they are
      # folded). Then the stages after +flat_map+ get a kernel of their own.
      MIN_ARRAYS = 64

      # Says that the kernel should become two. A stencil in it needs values that another kernel has computed, or stages
      # after +flat_map+ get a kernel of their own. Nothing has run, or nothing whose effect remains.
      class Cut < RuntimeError
        # @yieldparam step [Plan::Step]
        # @yieldreturn [Array<Plan::Step>]
        def initialize(&cut)
          @cut = cut
          super("a chain that is to be cut in two")
        end

        def of(step) = @cut.call(step)
      end

      CHANGES = "blocks change something, or draw"
      RAISES = "something raises"
      FEW_ELEMENTS = "there are fewer than #{MIN_ARRAYS} elements, whose arrays may be long"
      FEW_CHUNKS = "there are fewer than #{MIN_ARRAYS} chunks of #{Operation::CHUNK} elements, whose arrays may be long"
      NOT_COMPILED = "together they cannot be compiled"
      # The condition of each reduction, where the values of each element are first reduced in the kernel.
      NUMBERS = { sum: "all values are Integers", min: "all values are Integers, or all are Floats", max: "all values are Integers, or all are Floats", count: "they are compiled together" }.freeze
      private_constant :CHANGES, :RAISES, :FEW_ELEMENTS, :FEW_CHUNKS, :NOT_COMPILED, :NUMBERS

      # Why the stages after +flat_map+ were left to another kernel.
      attr_reader :given_up

      # A kernel over so many elements of a {Buffer} from one on, without stages. It can fold them.
      def self.part(buffer, from, count, options)
        new(Plan::Step.new([Stage.new(:take, [count])], 1, nil, nil, []), buffer, options, from: from)
      end

      # @param open [Boolean] whether an error follows the list
      # @param whole [Boolean] whether it must not be cut in two
      # @param from [Integer, nil] the first element to read, where the list is a {Buffer}
      # @param to [Integer, nil] positions from there on are not part of the chain
      def initialize(step, list, options, open: false, whole: false, from: nil, to: nil)
        @step = step
        @from = from
        limits = step.stages.take_while { |stage| %i[take drop].include?(stage.name) }
        @stages = step.stages.drop(limits.size)
        @options = options
        @whole = whole
        if @stages.first&.name == :stencil
          @grid = step.grid? ? list.is_a?(Stencil) ? list.like(@stages.first.args.first) : Stencil.new(list, @stages.first.args.first) : @stages.first.stencil
          # It is a list whose elements are read.
          list = step.grid? ? @grid.list : list.is_a?(Buffer) ? list : list.to_a
        end
        @base = from ? :part : !list.is_a?(Range) ? :array : options[:__slab] ? :slab : :range
        @list = from ? list : limits.reduce(list) { |part, stage| stage.name == :take ? part(part, 0, stage.args.first) : part(part, stage.args.first, part.size) }
        # The number of positions after each stage. The first, which `rotate` makes the last, is that of the list.
        sizes = [list.size]
        @closed = false
        step.stages.each do |stage|
          @closed ||= open && stage.ends?(sizes.last)
          sizes << (step.grid? ? list.size : stage.size(sizes.last, open: open && !@closed))
        end
        sizes[-1] = to if to
        @sizes = sizes.drop(limits.size).rotate(1)
      end

      # The values as an Array; the error that ended them; whether the chain itself ended.
      #
      # @param most [Integer, nil] the most values that are needed
      # @param strict [Boolean] whether an error is raised
      def values(most, strict: false)
        total = @sizes[@stages.size - 1]
        # A new list, so that no other chain has it as its base.
        return [bare.first(most || total), nil, @closed || (!most.nil? && total >= most)] if @stages.empty?

        parts, error, enough = parts(most, strict: strict)
        list = parts.map { |values| listed(values) }.reduce { |all, more| all.concat(more) } || []
        [most ? list.first(most) : list, error, enough]
      end

      # The elements that +take+ and +drop+ leave, where there is nothing to compute.
      def bare = part(@list, 0, @sizes[@stages.size - 1])

      # The values as {#values} gives them, but in the parts in which they were computed. Each part is an Array, or
      # numbers in a {Buffer}, where the kernel left them.
      def parts(most, strict: false, numbers: @step.holes?)
        total = @sizes[@stages.size - 1]
        open = @step.sparse?
        total = [total, most].min if most && !open
        # The end may be near. But where a kernel needs positions, the whole list is packed for each section.
        early = @step.ended? && !Text.by_position?(@stages, nil)
        width = early || (most && open) ? [*most, FIRST].max : [total, 1].max
        parts = []
        count = 0
        from = 0
        while from < total && !(most && count >= most)
          to = [from + width, total].min
          values, error = chunk(from, to, strict && most.nil? && !@step.ended?, numbers)
          values, stopped = compacted(values)
          parts << values
          count += values.size
          return [parts, nil, true] if stopped

          if error && !(most && count >= most)
            give_up(RAISES) if together?
            break
          end

          from = to
          width = [width * 4, MAX_PART_ELEMENTS].min
          error = nil
        end
        [parts, error, error.nil? && (@closed || (!most.nil? && count >= most))]
      end

      # Yields the values, or what +take+ or +drop+ leave of them, in the parts in which they were computed. For each
      # part it yields the position and number of values that count. Then gives the error that ended them, and whether
      # the chain itself ended. Numbers stay where the kernel left them, until the block ends.
      def left(strict: false)
        what, argument = @step.ending
        parts, error, enough = parts(what == :take ? argument : nil, strict: strict, numbers: true)
        skipped = what == :drop ? argument : 0
        room = what == :take ? argument : Float::INFINITY
        counted = parts.map do |values|
          from = [skipped, values.size].min
          count = [values.size - from, room].min
          skipped -= from
          room -= count
          [values, from, count]
        end
        yield(counted, error, enough)
      ensure
        parts&.grep(Buffer)&.each(&:free)
      end

      # The position at which +take_while+ ends the chain, or nil; the error before it; and whether it was looked for.
      # It is not where blocks change something, or draw random numbers, because they run again for the values.
      def stop
        stages = @stages.take(@stages.rindex { |stage| stage.name == :take_while } + 1)
        total = @sizes[@stages.size - 1]
        # The end may be near. But where a kernel needs positions, the whole list is packed for each section.
        width = Text.by_position?(stages, :stop) ? total : FIRST
        from = 0
        while from < total
          to = [from + width, total].min
          how, at = run(from, to, :stop, { __only: true }, [[:truth]], stages: stages)
          return [from + at, nil, true] if how == :found
          return [nil, nil, false] if how

          from = to
          width *= 16
        end
        [nil, nil, true]
      rescue Located => error
        [shifted(error, from).ikra.index, error, true]
      end

      # All values for a stencil that reads them, as {#values} gives them. Numbers stay where the kernel left them.
      def kept
        return values(nil) if @step.flat?

        values = run(0, @sizes[@stages.size - 1], nil, { __into: :numbers })
        [@step.grid? ? @grid.like(@grid.places, values) : values, nil, @closed]
      rescue Located
        raise if @step.grid?

        values(nil)
      end

      # Arrays within arrays, for a stencil of more than one dimension.
      def nested = @grid.nested(computed(0, @list.size, false))

      # Whether its values do not reach the error after the list.
      def closed? = @closed

      # The combined values of each chunk, in order. nil after a +flat_map+ whose stages get a kernel of their own.
      def fold(folder, start)
        count = @sizes[@stages.size - 1] + start.size
        chunks = (count + Operation::CHUNK - 1) / Operation::CHUNK
        text = Text.of(@stages, @step.abreast, @base, start.empty? ? :fold : :fold_from, folder)
        run = ->(*within) { section(text, 0...chunks, { start: start.first, folder: folder }, *within) }
        return Ikra.__compacted(run.call, Hole, Stop).first unless @step.flat?
        return give_up(FEW_CHUNKS) if chunks < MIN_ARRAYS

        values = alone(text, &run) and Ikra.__compacted(values, Hole, Stop).first
      rescue Located
        raise unless @step.flat?

        give_up(RAISES)
      end

      # What a block emits for all values. `form`: `__pairs` or `__groups` of `Ikra.__section`.
      def emitted(emitter, form)
        count = @sizes[@stages.size - 1]
        text = Text.of(@stages, @step.abreast, @base, Reducing.giver(form), emitter)
        _, pairs = section(text, part(@list, 0, count), { from: 0, folder: emitter }, form, [])
        pairs
      end

      # (see Lazy#counted_texts)
      def counted_texts(wanted)
        how, found = run(0, @sizes[@stages.size - 1], nil, { __texts: true, wanted => true }, [])
        return found if how == :grouped

        yield(found) if how.nil?
      end

      # The sum of all values and a start, where the block adds, and the values are more than a chunk and of one kind of
      # number. nil where the block itself must run. It must where the sum is a Float zero, of which there are two, and
      # which may be the sum of no values.
      def added(start)
        return unless @sizes[@stages.size - 1] > Operation::CHUNK

        how, sum = @step.flat? ? [:reduced, reduced_together(:sum, :sum)] : reduced(:sum, again: true, only: true)
        start.sum(sum) unless how != :reduced || sum.nil? || sum.zero?
      rescue CompileError
        # Only the block can tell these apart.
      end

      # The reduction of the values by the kernel that computes them: +[:reduced, value]+ (`Ikra.__reduce`). Where that
      # is not possible, +[nil, values]+. With +only+ nothing has run then: +[:refused, nil]+.
      #
      # @param ending (see Text.of)
      # @param again [Boolean] whether the chain may have to be computed once more for it
      def reduced(reduction, ending: nil, again: false, only: false)
        options = { __into: :numbers, __reduce: reduction, __again: again, __only: only }
        left = run(0, @sizes[@stages.size - 1], ending, options, [])
        return [nil, left.to_list].tap { left.free } if left.is_a?(Buffer)

        how, value = left
        how.nil? ? [nil, Ikra.__compacted(value, Hole, Stop).first] : [how, value]
      end

      # The same after +flat_map+, where a text reduces the values of each element to a number, in a kernel that may run
      # again. nil where that is not possible.
      def reduced_together(reduction, ending)
        return give_up(FEW_ELEMENTS) if few? && behind?

        how, value = run(0, @sizes[@stages.size - 1], ending, { __into: :numbers, __reduce: reduction, __again: true, __only: true }, [])
        return value if how == :reduced

        @given_up = "that takes that #{NUMBERS.fetch(ending)}, and that blocks change nothing"
        nil
      rescue CompileError, Located
        give_up(RAISES)
      end

      # Leaves the stages after +flat_map+ to another kernel, if there are any.
      def give_up(why)
        @given_up = why
        raise Cut.new { |step| step.cut_flat("what follows is not in it: #{why}") } if behind?
      end

      # Whether there are stages after +flat_map+.
      def behind? = @stages.index { |stage| stage.name == :flat_map } + 1 < @stages.size

      # The value at a position, which must have one.
      def at(index) = @stages.empty? ? part(@list, index, index + 1).first : run(index, index + 1).first

      private

      # The values from one position to another, or those before an error.
      def chunk(from, to, strict, numbers)
        [computed(from, to, numbers), nil]
      rescue Located => error
        at = error.ikra.index
        shifted(error, from)
        give_up(RAISES) if strict && together?
        raise if strict

        [at.zero? ? [] : computed(from, from + at, numbers), error]
      end

      # The error of a part that begins at this position.
      def shifted(error, from)
        error.instance_variable_set(:@ikra, Position.new(error.ikra.index + from, error.ikra.tick).freeze) unless from.zero?
        error
      end

      # Elements without a value are left out where the kernel runs, if the others are numbers.
      def computed(from, to, numbers)
        options = numbers ? { __into: :numbers } : {}
        options[:__join] = true if @step.flat?
        return run(from, to, nil, options) unless together?
        return give_up(FEW_ELEMENTS) if few?

        alone(text_of(nil)) { |pure, within| run(from, to, nil, options.merge(pure), within) }
      end

      def listed(values) = values.is_a?(Buffer) ? values.to_list.tap { values.free } : values

      # The values without elements that are left out. Arrays that are to be joined are replaced by their elements.
      def compacted(values)
        return [values, false] if values.is_a?(Buffer)

        list, stopped = Ikra.__compacted(values, Hole, Stop)
        [@step.flat? ? list.flatten(1) : list, stopped]
      end

      # Whether the stages after +flat_map+ are in the same kernel.
      def together? = @step.flat? && !Text.joined?(@stages)

      def few? = @sizes[@stages.size - 1] < MIN_ARRAYS

      # The result of the block's section, with the options that the block gives it, if nothing else changes. Otherwise
      # this is given up, also for the next time.
      def alone(text)
        left = text.given_up ? :refused : yield({ __pure: true }, [])
        return left if left.is_a?(Buffer)

        how, value = left
        return value unless how == :refused

        give_up(text.given_up ||= CHANGES)
      rescue CompileError
        give_up(text.given_up = NOT_COMPILED)
      end

      def text_of(ending, stages = @stages) = Text.of(stages, @step.abreast, @base, ending, nil)

      def run(from, to, ending = nil, options = nil, within = nil, stages: @stages)
        text = text_of(ending, stages)
        base = Text.by_position?(stages, ending) ? from...to : part(@list, from, to)
        section(text, base, { from: from }, options, within, ending == :stop ? :find : :map)
      end

      # The elements from one position to another, as far as they exist.
      def part(list, from, to)
        return list if from.zero? && to >= list.size
        return list[from...to] || [] if @base == :array

        (list.begin + [from, list.size].min)...(list.begin + [to, list.size].min)
      end

      def section(text, base, more, options = nil, within = nil, kind = :map)
        block = text.block(text.given.each_value.map { |what, at, number| given(what, at, number, more) })
        options = options ? @options.merge(options) : @options
        return Ikra.__section(:plazy, kind, base, 1, options, block, within) unless text.looks?

        ended = Ikra.__section(:plazy, kind, base, 1, options.merge(__apart: !@whole, __told: @step.told), block, within || [])
        return ended.tap { @whole = true } if ended.is_a?(Buffer)
        raise Cut.new { |step| step.cut(ended[1]) } if ended.first == :apart

        @whole = true
        within ? ended : ended[1]
      end

      def given(what, at, number, more)
        case what
        when :list then @list
        when :hole then Hole
        when :stop then Stop
        when :first then @from || @list.begin
        when :block then at.equal?(:fold) ? more.fetch(:folder).callable : @stages[at].callable
        when :arg then @stages[at].args[number]
        when :grid then number ? @grid.public_send(at)[number] : @grid.public_send(at)
        when :width then [@stages[at].args.first, [@sizes[at - 1], 1].max].min
        when :list_of then lists(at)[number]
        when :size then @sizes[at]
        when :chunk then Operation::CHUNK
        else more.fetch(what)
        end
      end

      # The other lists of a chain, as far as they are needed.
      def lists(at)
        @lists ||= {}
        @lists[at] ||= @stages[at].args.map do |other|
          next other if other.is_a?(Array)

          (other.is_a?(Enumerable) ? other : other.to_enum).first(@sizes[at])
        end
      end
    end
    private_constant :Kernel
  end
end
