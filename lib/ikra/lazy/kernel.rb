# frozen_string_literal: true

module Ikra
  class Lazy
    # The text of one kernel: an ordinary Ruby block that computes the element at a position through all its stages. Their
    # blocks are captured Procs, which become part of the code that calls them.
    #
    # One {Text} is made for each shape of stages with their blocks' code, so each is a block of its own to the compiler, and what
    # was compiled for it is found again.
    # @api private
    class Text
      FOLDS = %i[fold fold_from].freeze
      # Which look at other positions than their own.
      LOOKING = %i[stencil each_slice].freeze
      # As many texts are remembered.
      MOST = 1_000

      @known = {}
      @lock = Mutex.new

      class << self
        # @param stages [Array<Stage>]
        # @param abreast [Integer] how many values stand side by side in an element
        # @param base [:array, :range]
        # @param ending [nil, :there, :stop, :fold, :fold_from] what is made of the values: all of them; whether there is one; whether the chain ends there;
        #   those of each chunk together, beginning with the first or with a start
        # @param folder [Stage, nil] what combines two of them
        def of(stages, abreast, base, ending, folder)
          shape = [abreast, base, ending, folder&.shape, *stages.map(&:shape)]
          @lock.synchronize do
            text = @known.delete(shape) || new(stages, abreast, base, ending, folder)
            @known.shift if @known.size >= MOST
            @known[shape] = text
          end
        end

        # Whether kernels over these go by positions, not from element to element.
        def by_position?(stages, ending) = FOLDS.include?(ending) || stages.any? { |stage| LOOKING.include?(stage.name) }
      end

      # Names of captured variables with what they hold: +[:list]+, +[:block, stage]+, +[:arg, stage, number]+, …
      attr_reader :given, :source

      def initialize(stages, abreast, base, ending, folder)
        @stages = stages
        @abreast = abreast
        @base = base
        @folder = folder
        @given = {}
        @names = 0
        @producers = []
        # whether positions stand in a fixed distance from the one that this text is for
        @fixed = !FOLDS.include?(ending)
        @by_position = Text.by_position?(stages, ending)
        folds = FOLDS.include?(ending)
        body = folds ? fold(ending) : element(ending)
        parameter = folds ? "_chunk" : @by_position ? "i" : "x"
        @source = "proc do |#{parameter}|\n#{body.map { |line| "  #{line}\n" }.join}end"
        @looks = !@producers.empty?
        @make = Ikra.__evaluate("->(#{@given.keys.join(", ")}) { #{[*@producers, @source].join("\n")} }", name)
        # a text outlives the blocks, and what they hold
        @stages = @folder = nil
      end

      # Whether a stencil in it looks at what other stages compute.
      def looks? = @looks

      # The block, with what its captured variables hold.
      def block(values) = @make.call(*values)

      private

      # Where the first block is that is written in a program.
      def name
        place = @stages.filter_map { |stage| stage.block&.source_location }.first
        place ? "the chain at #{place.join(":")}" : "a chain"
      end

      def give(name, *what)
        @given[name] = what
        name
      end

      def fresh(name) = "#{name}#{@names += 1}"

      def element(ending)
        lines = []
        there, stop = ending == :there, ending == :stop
        ways = { hole: there || stop ? "next false" : "next #{give("hole", :hole)}", stop: stop ? "next true" : "next #{give("stop", :stop)}" }
        values = value(@stages.size - 1, "i", lines, **ways)
        lines << (there ? "true" : stop ? "false" : packed(values))
      end

      # `preduce` over the values of a chunk (+__fold+ in the prelude).
      def fold(ending)
        width = give("width", :chunk)
        size = give("size", :size, @stages.size - 1)
        lines = ["i = ::Ikra.index * #{width}#{" - 1" if ending == :fold_from}", "last = i + #{width}", "last = #{size} if last > #{size}"]
        holes = @stages.any? { |stage| Plan::HOLES.include?(stage.name) }
        holes ? fold_with_holes(ending, lines) : fold_all(ending, lines)
      end

      def fold_all(ending, lines)
        at = below(@stages.size - 1, lines)
        lines << (ending == :fold_from ? "memo = i < 0 ? #{give("start", :start)} : #{at.call("i")}" : "memo = #{at.call("i")}")
        lines << "i += 1" << "while i < last" << "  memo = #{call(@folder, ["memo", at.call("i")], :fold)}" << "  i += 1" << "end" << "memo"
      end

      def fold_with_holes(ending, lines)
        lines << "memo = nil" << "none = true"
        lines << "if i < 0" << "  memo = #{give("start", :start)}" << "  none = false" << "  i = 0" << "end" if ending == :fold_from
        inner = []
        values = value(@stages.size - 1, "at", inner, hole: "next")
        inner << "memo = none ? #{packed(values)} : #{call(@folder, ["memo", packed(values)], :fold)}" << "none = false"
        lines << "while i < last" << "  at = i" << "  i += 1"
        lines.concat(inner.map { |line| "  #{line}" })
        lines << "end" << "none ? #{give("hole", :hole)} : memo"
      end

      # The values at a position after a stage: one, or several that Ruby's lazy chains pass on side by side.
      def value(at, index, lines, **ways)
        return leaf(index, lines) if at.negative?

        stage = @stages[at]
        __send__(:"on_#{stage.name}", stage, at, index, lines, ways)
      end

      def leaf(index, lines)
        return abreast("x") unless @by_position

        element = @base == :range ? "#{give("first", :first)} + #{index}" : "#{give("list", :list)}[#{index}]"
        abreast(assign(element, lines).first)
      end

      def abreast(element) = @abreast == 1 ? [element] : Array.new(@abreast) { |k| "#{element}[#{k}]" }

      def position(index, lines)
        return index if @by_position

        lines << "i = ::Ikra.index + #{give("from", :from)}" unless @given.key?("from")
        "i"
      end

      # A lambda for the values of the stages up to one; gives what calls it.
      def below(at, lines)
        name = fresh("at")
        index = fresh("i")
        lines.concat(element_at(name, index, at, fixed: false))
        ->(place) { "#{name}.call(#{place})" }
      end

      # The same for a stencil, which asks for positions around its own; its neighbours ask for most of them, too. So it is a captured lambda, a
      # function of the kernel's ({Ikra.__staged}).
      def around(at, index)
        name = fresh("at")
        @producers.concat(element_at(name, fresh("i"), at, fixed: true))
        sizes = @fixed ? extents(at) : []
        # an offset for each dimension, and what they come to
        lambda do |offset|
          away = @fixed ? offset : []
          "::Ikra.__staged(#{[name, moved(index, offset), *away, *sizes].join(", ")})"
        end
      end

      def element_at(name, index, at, fixed:)
        before, @fixed = @fixed, fixed
        inner = []
        values = value(at, index, inner)
        @fixed = before
        ["#{name} = lambda do |#{index}|", *inner.map { |line| "  #{line}" }, "  #{packed(values)}", "end"]
      end

      # How many positions there are after a stage, in each dimension.
      def extents(at)
        dimensions = @stages[at].stencil.sizes.size if @stages[at].name == :stencil
        return [give("size#{at + 1}", :size, at)] unless dimensions && dimensions > 1

        Array.new(dimensions) { |d| give("extent#{d}", :grid, :sizes, d) }
      end

      # A position by its offset in each dimension.
      def moved(index, offset)
        *outer, last = offset
        [index, *outer.each_with_index.map { |away, d| "#{away} * #{give("stride#{d}", :grid, :strides, d)}" unless away.zero? }, last].compact.join(" + ")
      end

      def packed(values) = values.size == 1 ? values.first : "[#{values.join(", ")}]"

      def assign(text, lines)
        lines << "#{name = fresh("x")} = #{text}"
        [name]
      end

      # Calls a stage's block as Ruby calls it: with several values side by side, or (`together`) with an array of them.
      def call(stage, values, at, lines = nil, together: false)
        kind, *detail = stage.form
        return call_symbol(detail.first, together ? [packed(values)] : values) if kind == :symbol

        name = give(at == :fold ? "reduce" : "#{stage.name}#{at + 1}", :block, at)
        return "#{name}.call(#{together ? packed(values) : values.join(", ")})" if kind == :lambda

        call_proc(name, *detail, together ? [packed(values)] : values, together ? values : [], lines)
      end

      def call_symbol(name, values)
        receiver, *rest = values
        return "#{receiver}.#{name}(#{rest.join(", ")})" if name.match?(/\A([[:alpha:]_][[:alnum:]_]*[?!]?|[+*\/%<>~!^&|-]|[+-]@|\*\*|<=|>=|==|!=|<=>|===|=~|<<|>>|\[\])\z/)

        "#{receiver}.public_send(#{[name.to_sym.inspect, *rest].join(", ")})"
      end

      # A proc takes what it has parameters for, and a single array by its elements, which may be known one by one.
      def call_proc(name, least, most, values, elements, lines)
        one_by_one = ->(all) { "#{name}.call(#{filled(all, least, most).join(", ")})" }
        return one_by_one.call(values) if values.size > 1 || most&.<=(1) || (most.nil? && least.zero?)
        return one_by_one.call(elements) if elements.size > 1

        one = values.first
        apart = ->(list) { least == most ? one_by_one.call(Array.new(least) { |k| "#{list}[#{k}]" }) : "#{name}.call(#{list})" }
        lines << "#{array = fresh("x")} = #{one}.is_a?(Array) ? #{apart.call(one)} : " \
                 "#{one}.respond_to?(:to_ary) ? (#{list = fresh("x")} = #{one}.to_ary; #{apart.call(list)}) : #{one_by_one.call(values)}"
        array
      end

      # As many as are taken, with nil for what is missing.
      def filled(values, least, most) = (most ? values.first(most) : values) + (["nil"] * [least - values.size, 0].max)

      def on_map(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        assign(call(stage, values, at, lines), lines)
      end
      alias on_flat_map on_map

      def on_map_packed(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        assign(call(stage, values, at, lines, together: true), lines)
      end

      def on_select(stage, at, index, lines, ways, test = "unless")
        values = value(at - 1, index, lines, **ways)
        lines << "#{ways.fetch(:hole)} #{test} #{call(stage, values, at, lines, together: true)}"
        values
      end

      def on_reject(stage, at, index, lines, ways) = on_select(stage, at, index, lines, ways, "if")

      def on_compact(_stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        lines << "#{ways.fetch(:hole)} if #{values.first}.nil?" if values.size == 1
        values
      end

      def on_filter_map(stage, at, index, lines, ways)
        values = on_map(stage, at, index, lines, ways)
        lines << "#{ways.fetch(:hole)} unless #{values.first}"
        values
      end

      def on_take_while(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        lines << "#{ways.fetch(:stop)} unless #{call(stage, values, at, lines)}"
        values
      end

      def on_take(_stage, at, index, lines, ways) = value(at - 1, index, lines, **ways)

      def on_with_index(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        place = "#{position(index, lines)} + #{give("offset#{at}", :arg, at, 0)}"
        return [packed(values), "(#{place})"] unless stage.block

        lines << call(stage, [packed(values), place], at, lines)
        values
      end

      def on_zip(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        place = position(index, lines)
        [packed(values), *Array.new(stage.args.size) { |k| assign("#{give("list#{at}_#{k}", :list_of, at, k)}[#{place}]", lines).first }]
      end

      def on_combine(stage, at, index, lines, ways)
        values = on_zip(stage, at, index, lines, ways)
        assign(call(stage, values, at, lines), lines)
      end

      def on_stencil(stage, at, index, lines, _ways)
        outside = outside(stage.stencil, at, index, lines)
        run = at.zero? ? within_list(stage, index) : neighbours(stage, at, around(at - 1, index))
        assign("#{outside} ? #{give("fill#{at}", :arg, at, 1)} : #{run}", lines)
      end

      # Whether some neighbour is not there.
      def outside(stencil, at, index, lines)
        bounds = stencil.least.zip(stencil.greatest)
        return sides(index, bounds.first, give("size#{at}", :size, at - 1)) if bounds.size == 1

        bounds.each_with_index.map do |sides, d|
          extent = give("extent#{d}", :grid, :sizes, d)
          # none of them is zero, or there would be no position: said so that ranges know it
          stride = d == bounds.size - 1 ? 1 : give("stride#{d}", :grid, :strides, d)
          whole, part = assign("#{extent} < 1 ? 1 : #{extent}", lines).first, assign("#{stride} < 1 ? 1 : #{stride}", lines).first
          here = assign("#{index} / #{part}#{" % #{whole}" unless d.zero?}", lines).first
          sides(here, sides, extent)
        end.join(" || ")
      end

      def sides(index, (least, greatest), size) = "#{index} + #{least} < 0 || #{index} + #{greatest} >= #{size}"

      # Calls a stencil's block with what computes its neighbours.
      def neighbours(stage, at, before)
        stencil = stage.stencil
        all = ->(places) { places.map(&before).join(", ") }
        called(stage, at, all) do
          spans = stencil.least.zip(stencil.greatest)
          *places = spans.map { |from, to| (from..to).to_a }.reduce { |one, other| one.product(other).map(&:flatten) }
          box = spans.map { |from, to| to - from + 1 }
          strides = box.each_index.map { |d| box.drop(d + 1).reduce(1, :*) }
          centre = stencil.least.zip(strides).sum { |from, stride| -from * stride }
          "::Ikra::Neighbours.new([#{all.call(places.map { |place| [*place] })}], #{centre}, #{strides}, #{stencil.least}, #{stencil.greatest})"
        end
      end

      # The same where they are looked up.
      def within_list(stage, index)
        list = give("list", :list)
        called(stage, 0, ->(places) { places.map { |place| "#{list}[#{moved(index, place)}]" }.join(", ") }) do
          spans = %i[strides least greatest].map { |what| give(what.to_s, :grid, what) }
          "::Ikra::Neighbours.new(#{list}, #{index}, #{spans.join(", ")})"
        end
      end

      # In the form in which the block takes its neighbours; the block gives all of them in one.
      def called(stage, at, all)
        name = give("stencil#{at + 1}", :block, at)
        return "#{name}.call" if stage.form == [:proc, 0, 0]

        case stage.stencil.form(stage.block, false)
        when :each then "#{name}.call(#{all.call(stage.stencil.places)})"
        when :list
          list = "[#{all.call(stage.stencil.places)}]"
          stage.form.first == :symbol ? call_symbol(stage.form.last, [list]) : "#{name}.call(#{list})"
        else "#{name}.call(#{yield})"
        end
      end

      def on_each_slice(_stage, at, index, lines, _ways)
        before = below(at - 1, lines)
        width = give("width#{at}", :width, at)
        size = give("size#{at}", :size, at - 1)
        first, last, each = fresh("from"), fresh("to"), fresh("i")
        lines << "#{first} = #{index} * #{width}" << "#{last} = #{first} + #{width}" << "#{last} = #{size} if #{last} > #{size}"
        assign("(#{first}...#{last}).map { |#{each}| #{before.call(each)} }", lines)
      end
    end
    private_constant :Text

    # One kernel of a chain over a list.
    # @api private
    class Kernel
      # As many elements are computed at first where it is not known how many are needed; then four times as many, and so on.
      FIRST = 256

      # A stencil in it is better given what another kernel has computed: which it is of those that look at computed values. Nothing has run.
      class Cut < RuntimeError
        attr_reader :stencil

        def initialize(stencil)
          @stencil = stencil
          super("a chain that is to be cut in two")
        end
      end

      # @param open [Boolean] an error follows the list
      # @param whole [Boolean] it is not to be cut in two
      # @param to [Integer, nil] positions from there on are none of the chain's
      def initialize(step, list, options, open: false, whole: false, to: nil)
        @step = step
        limits = step.stages.take_while { |stage| %i[take drop].include?(stage.name) }
        @stages = step.stages.drop(limits.size)
        @options = options
        @whole = whole
        if @stages.first&.name == :stencil
          @grid = step.grid? ? list.is_a?(Stencil) ? list.like(@stages.first.args.first) : Stencil.new(list, @stages.first.args.first) : @stages.first.stencil
          # which is looked into
          list = step.grid? ? @grid.list : list.is_a?(Buffer) ? list : list.to_a
        end
        @base = list.is_a?(Range) ? :range : :array
        @list = limits.reduce(list) { |part, stage| stage.name == :take ? part(part, 0, stage.args.first) : part(part, stage.args.first, part.size) }
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
        return [part(@list, 0, most || total).to_a, nil, @closed || (!most.nil? && total >= most)] if @stages.empty?

        parts, error, enough = parts(most, strict: strict)
        list = parts.map { |values| listed(values) }.reduce { |all, more| all.concat(more) } || []
        [most ? list.first(most) : list, error, enough]
      end

      # The values as {#values} gives them, but in parts, as many as it took: each an Array, or numbers in a {Buffer}, where the kernel left them.
      def parts(most, strict: false, numbers: @step.holes?)
        total = @sizes[@stages.size - 1]
        open = @step.holes? || @step.ending == [:flatten]
        total = [total, most].min if most && !open
        width = most && open ? [most, FIRST].max : [total, 1].max
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
          break if error && !(most && count >= most)

          from = to
          width *= 4
          error = nil
        end
        [parts, error, error.nil? && (@closed || (!most.nil? && count >= most))]
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

      # The values of each chunk together, in order.
      def fold(folder, start)
        count = @sizes[@stages.size - 1] + start.size
        chunks = (count + Operation::CHUNK - 1) / Operation::CHUNK
        text = Text.of(@stages, @step.abreast, @base, start.empty? ? :fold : :fold_from, folder)
        list, = Ikra.__sieved(section(text, 0...chunks, { start: start.first, folder: folder }), Hole, Stop)
        list
      end

      # What the values are reduced to by the kernel that computes them: +[:reduced, value]+ (`Ikra.__reduce`). Where it cannot, +[nil, values]+, or
      # with +only+ nothing has run: +[:refused, nil]+.
      #
      # @param ending (see Text.of)
      # @param again [Boolean] the chain may have to be computed once more for it
      def reduced(reduction, ending: nil, again: false, only: false)
        options = { __into: :numbers, __reduce: reduction, __again: again, __only: only }
        how, value = run(0, @sizes[@stages.size - 1], ending, options, [])
        return [how, value] unless how.nil?
        return [nil, Ikra.__sieved(value, Hole, Stop).first] unless value.is_a?(Buffer)

        [nil, value.to_list].tap { value.free }
      end

      # The value at a position, which has one.
      def at(index) = @stages.empty? ? part(@list, index, index + 1).first : run(index, index + 1).first

      private

      # The values from one position to another, or those before an error.
      def chunk(from, to, strict, numbers)
        [computed(from, to, numbers), nil]
      rescue Located => error
        at = error.ikra.index
        shifted(error, from)
        raise if strict

        [at.zero? ? [] : computed(from, from + at, numbers), error]
      end

      # The error of a part that begins there.
      def shifted(error, from)
        error.instance_variable_set(:@ikra, Position.new(error.ikra.index + from, error.ikra.tick).freeze) unless from.zero?
        error
      end

      # Where some are left out, and the others are numbers, that is done where the kernel runs.
      def computed(from, to, numbers) = run(from, to, nil, numbers ? { __into: :numbers } : nil)

      def listed(values) = values.is_a?(Buffer) ? values.to_list.tap { values.free } : values

      # Without what is left out; of arrays that are to be joined, their elements.
      def sieved(values)
        return [values, false] if values.is_a?(Buffer)

        list, stopped = Ikra.__sieved(values, Hole, Stop)
        [@step.ending == [:flatten] ? list.flatten(1) : list, stopped]
      end

      def run(from, to, ending = nil, options = nil, within = nil, stages: @stages)
        text = Text.of(stages, @step.abreast, @base, ending, nil)
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
        raise Cut.new(ended[1]) if ended.first == :apart

        @whole = true
        within ? ended : ended[1]
      end

      def given(what, at, number, more)
        case what
        when :list then @list
        when :hole then Hole
        when :stop then Stop
        when :first then @list.begin
        when :block then at == :fold ? more.fetch(:folder).callable : @stages[at].callable
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
