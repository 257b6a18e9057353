# frozen_string_literal: true

module Ikra
  class Lazy
    # One kernel of a chain over a list.
    # @api private
    class Kernel
      # As many elements are computed at first where it is not known how many are needed; then four times as many, and so on.
      FIRST = 256

      # As many at most, once it is: a section has room for all that it may give.
      MOST = 1 << 27

      # Arrays of fewer elements may be long, and each is gone over by one thread, or those of a chunk where they are folded: then the stages behind +flat_map+ are not in its kernel.
      FEW = 64

      # It is better made two: a stencil in it is better given what another kernel has computed, or what is behind +flat_map+ goes over what that gave.
      # Nothing has run, or nothing that counts.
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
      FEW_ELEMENTS = "there are fewer than #{FEW} elements, whose arrays may be long"
      FEW_CHUNKS = "there are fewer than #{FEW} chunks of #{Operation::CHUNK} elements, whose arrays may be long"
      NOT_COMPILED = "together they cannot be compiled"
      # Where what the values of each element come to is reduced.
      NUMBERS = { sum: "all values are Integers", min: "all values are Integers, or all are Floats", max: "all values are Integers, or all are Floats", count: "they are compiled together" }.freeze
      private_constant :CHANGES, :RAISES, :FEW_ELEMENTS, :FEW_CHUNKS, :NOT_COMPILED, :NUMBERS

      # Why what is behind +flat_map+ was left to somebody else.
      attr_reader :given_up

      # Of so many elements of a {Buffer} from one on, of which nothing is computed: they can be folded.
      def self.part(buffer, from, count, options)
        new(Plan::Step.new([Stage.new(:take, [count])], 1, nil, nil, []), buffer, options, from: from)
      end

      # @param open [Boolean] an error follows the list
      # @param whole [Boolean] it is not to be cut in two
      # @param from [Integer, nil] the list is a {Buffer}, whose elements are looked at from there on
      # @param to [Integer, nil] positions from there on are none of the chain's
      def initialize(step, list, options, open: false, whole: false, from: nil, to: nil)
        @step = step
        @from = from
        limits = step.stages.take_while { |stage| %i[take drop].include?(stage.name) }
        @stages = step.stages.drop(limits.size)
        @options = options
        @whole = whole
        if @stages.first&.name == :stencil
          @grid = step.grid? ? list.is_a?(Stencil) ? list.like(@stages.first.args.first) : Stencil.new(list, @stages.first.args.first) : @stages.first.stencil
          # which is looked into
          list = step.grid? ? @grid.list : list.is_a?(Buffer) ? list : list.to_a
        end
        @base = from ? :part : list.is_a?(Range) ? :range : :array
        @list = from ? list : limits.reduce(list) { |part, stage| stage.name == :take ? part(part, 0, stage.args.first) : part(part, stage.args.first, part.size) }
        # how many positions there are after each stage; the last: in the list
        sizes = [list.size]
        @closed = false
        step.stages.each do |stage|
          @closed ||= open && stage.ends?(sizes.last)
          sizes << (step.grid? ? list.size : stage.size(sizes.last, open: open && !@closed))
        end
        sizes[-1] = to if to
        @sizes = sizes.drop(limits.size).rotate(1)
      end

      # The values as an Array; the error that ended them; whether it was the chain that did.
      #
      # @param most [Integer, nil] no more are asked for
      # @param strict [Boolean] an error is raised
      def values(most, strict: false)
        total = @sizes[@stages.size - 1]
        # a list of its own, which is nobody else's base
        return [bare.first(most || total), nil, @closed || (!most.nil? && total >= most)] if @stages.empty?

        parts, error, enough = parts(most, strict: strict)
        list = parts.map { |values| listed(values) }.reduce { |all, more| all.concat(more) } || []
        [most ? list.first(most) : list, error, enough]
      end

      # What it was given, as far as +take+ and +drop+ leave it, where there is nothing to compute.
      def bare = part(@list, 0, @sizes[@stages.size - 1])

      # The values as {#values} gives them, but in parts, as many as it took: each an Array, or numbers in a {Buffer}, where the kernel left them.
      def parts(most, strict: false, numbers: @step.holes?)
        total = @sizes[@stages.size - 1]
        open = @step.sparse?
        total = [total, most].min if most && !open
        # the end may be near; but where positions are gone by, the whole list is packed for each section
        early = @step.ended? && !Text.by_position?(@stages, nil)
        width = early || (most && open) ? [*most, FIRST].max : [total, 1].max
        parts = []
        count = 0
        from = 0
        while from < total && !(most && count >= most)
          to = [from + width, total].min
          values, error = chunk(from, to, strict && most.nil? && !@step.ended?, numbers)
          values, stopped = sieved(values)
          parts << values
          count += values.size
          return [parts, nil, true] if stopped

          if error && !(most && count >= most)
            give_up(RAISES) if together?
            break
          end

          from = to
          width = [width * 4, MOST].min
          error = nil
        end
        [parts, error, error.nil? && (@closed || (!most.nil? && count >= most))]
      end

      # Gives the block the values, or what +take+ or +drop+ leave of them, in the parts in which they were computed; of each, from where on and how many of it count.
      # Then the error that ended them, and whether it was the chain that did. Numbers are where the kernel left them, until the block ends.
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

      # The position at which +take_while+ ends the chain, which may be none; the error before it; whether it was looked for: not where blocks change something,
      # or draw, as they are to run once more for the values.
      def stop
        stages = @stages.take(@stages.rindex { |stage| stage.name == :take_while } + 1)
        total = @sizes[@stages.size - 1]
        # the end may be near; but where positions are gone by, the whole list is packed for each section
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

      # All values for a stencil that looks at them, as {#values} gives them; numbers stay where the kernel left them.
      def kept
        return values(nil) if @step.flat?

        values = run(0, @sizes[@stages.size - 1], nil, { __into: :numbers })
        [@step.grid? ? @grid.like(@grid.places, values) : values, nil, @closed]
      rescue Located
        raise if @step.grid?

        values(nil)
      end

      # Arrays within arrays, of a stencil of more dimensions than one.
      def nested = @grid.nested(computed(0, @list.size, false))

      # What it computes does not come to the error after the list.
      def closed? = @closed

      # The values of each chunk together, in order; nil behind a +flat_map+ that is better off without.
      def fold(folder, start)
        count = @sizes[@stages.size - 1] + start.size
        chunks = (count + Operation::CHUNK - 1) / Operation::CHUNK
        text = Text.of(@stages, @step.abreast, @base, start.empty? ? :fold : :fold_from, folder)
        run = ->(*within) { section(text, 0...chunks, { start: start.first, folder: folder }, *within) }
        return Ikra.__sieved(run.call, Hole, Stop).first unless @step.flat?
        return give_up(FEW_CHUNKS) if chunks < FEW

        values = alone(text, &run) and Ikra.__sieved(values, Hole, Stop).first
      rescue Located
        raise unless @step.flat?

        give_up(RAISES)
      end

      # What a block that adds makes of all values, and of a start, where they are more than a chunk and numbers of one kind: their sum. nil: it is to be
      # asked itself, as where the sum is zero, which may be that of no values, and of which there are two Floats.
      def added(start)
        return unless @sizes[@stages.size - 1] > Operation::CHUNK

        how, sum = @step.flat? ? [:reduced, reduced_together(:sum, :sum)] : reduced(:sum, again: true, only: true)
        start.sum(sum) unless how != :reduced || sum.nil? || sum.zero?
      rescue CompileError
        # which the block has to tell
      end

      # What the values are reduced to by the kernel that computes them: +[:reduced, value]+ (`Ikra.__reduce`). Where it cannot, +[nil, values]+, or
      # with +only+ nothing has run: +[:refused, nil]+.
      #
      # @param ending (see Text.of)
      # @param again [Boolean] the chain may have to be computed once more for it
      def reduced(reduction, ending: nil, again: false, only: false)
        options = { __into: :numbers, __reduce: reduction, __again: again, __only: only }
        left = run(0, @sizes[@stages.size - 1], ending, options, [])
        return [nil, left.to_list].tap { left.free } if left.is_a?(Buffer)

        how, value = left
        how.nil? ? [nil, Ikra.__sieved(value, Hole, Stop).first] : [how, value]
      end

      # The same behind +flat_map+, where a text makes numbers of the values of each element, in a kernel that may run again; nil where it cannot.
      def reduced_together(reduction, ending)
        return give_up(FEW_ELEMENTS) if few? && behind?

        how, value = run(0, @sizes[@stages.size - 1], ending, { __into: :numbers, __reduce: reduction, __again: true, __only: true }, [])
        return value if how == :reduced

        @given_up = "that takes that #{NUMBERS.fetch(ending)}, and that blocks change nothing"
        nil
      rescue CompileError, Located
        give_up(RAISES)
      end

      # Leaves what is behind +flat_map+ to another kernel, if there is anything.
      def give_up(why)
        @given_up = why
        raise Cut.new { |step| step.cut_flat("what follows is not in it: #{why}") } if behind?
      end

      # Whether anything is behind +flat_map+.
      def behind? = @stages.index { |stage| stage.name == :flat_map } + 1 < @stages.size

      # The value at a position, which has one.
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

      # The error of a part that begins there.
      def shifted(error, from)
        error.instance_variable_set(:@ikra, Position.new(error.ikra.index + from, error.ikra.tick).freeze) unless from.zero?
        error
      end

      # Where some are left out, and the others are numbers, that is done where the kernel runs.
      def computed(from, to, numbers)
        options = numbers ? { __into: :numbers } : {}
        options[:__join] = true if @step.flat?
        return run(from, to, nil, options) unless together?
        return give_up(FEW_ELEMENTS) if few?

        alone(text_of(nil)) { |pure, within| run(from, to, nil, options.merge(pure), within) }
      end

      def listed(values) = values.is_a?(Buffer) ? values.to_list.tap { values.free } : values

      # Without what is left out; of arrays that are to be joined, their elements.
      def sieved(values)
        return [values, false] if values.is_a?(Buffer)

        list, stopped = Ikra.__sieved(values, Hole, Stop)
        [@step.flat? ? list.flatten(1) : list, stopped]
      end

      # Whether what is behind +flat_map+ is in the same kernel.
      def together? = @step.flat? && !Text.joined?(@stages)

      def few? = @sizes[@stages.size - 1] < FEW

      # What the block's section gives, to which it gives these options, where nothing else changes; else it is given up, also for the next time.
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

      # The elements from one position to another, as far as there are.
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

      # The lists beside a chain, as far as they are needed.
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
