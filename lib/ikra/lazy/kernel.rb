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
      # What the element has in its place that ends the chain. One without a value has {Hole}.
      STOP = :"Ikra::Lazy stop"
      FOLDS = %i[fold fold_from].freeze
      # As many texts are remembered.
      MOST = 1_000

      @known = {}
      @lock = Mutex.new

      class << self
        # @param stages [Array<Stage>]
        # @param abreast [Integer] how many values stand side by side in an element
        # @param base [:array, :range]
        # @param ending [nil, :there, :fold, :fold_from] what is made of the values: all of them; whether there is one; those of each chunk together,
        #   beginning with the first or with a start
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
        def by_position?(stages, ending) = FOLDS.include?(ending) || stages.any? { |stage| %i[stencil each_slice].include?(stage.name) }
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
        @by_position = Text.by_position?(stages, ending)
        folds = FOLDS.include?(ending)
        body = folds ? fold(ending) : element(ending)
        parameter = folds ? "_chunk" : @by_position ? "i" : "x"
        @source = "proc do |#{parameter}|\n#{body.map { |line| "  #{line}\n" }.join}end"
        @make = Ikra.__evaluate("->(#{@given.keys.join(", ")}) { #{@source} }", name)
        # a text outlives the blocks, and what they hold
        @stages = @folder = nil
      end

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
        values = value(@stages.size - 1, "i", lines, hole: ending == :there ? "next false" : "next ::Ikra::Hole")
        lines << (ending == :there ? "true" : packed(values))
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
        lines << "end" << "none ? ::Ikra::Hole : memo"
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
        inner = []
        values = value(at, index, inner)
        lines << "#{name} = lambda do |#{index}|"
        lines.concat(inner.map { |line| "  #{line}" })
        lines << "  #{packed(values)}" << "end"
        ->(place) { "#{name}.call(#{place})" }
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
        lines << "next #{STOP.inspect} unless #{call(stage, values, at, lines)}"
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
        stencil = stage.stencil
        least, greatest = stencil.least.first, stencil.greatest.first
        outside = ["#{index} + #{least} < 0", "#{index} + #{greatest} >= #{give("size#{at}", :size, at - 1)}"].join(" || ")
        run = at.zero? && stencil.form(stage.block, false) == :relative ? within_list(stage, index) : neighbours(stage, at, index, least..greatest, below(at - 1, lines))
        assign("#{outside} ? #{give("fill#{at}", :arg, at, 1)} : #{run}", lines)
      end

      def neighbours(stage, at, index, span, before)
        name = give("stencil#{at + 1}", :block, at)
        each = ->(offsets) { offsets.map { |offset| before.call("#{index} + #{offset}") }.join(", ") }
        case stage.stencil.form(stage.block, false)
        when :each then "#{name}.call(#{each.call(stage.stencil.offsets)})"
        when :list then stage.form.first == :symbol ? call_symbol(stage.form.last, ["[#{each.call(stage.stencil.offsets)}]"]) : "#{name}.call([#{each.call(stage.stencil.offsets)}])"
        else
          return "#{name}.call" if stage.form == [:proc, 0, 0]

          "#{name}.call(::Ikra::Neighbours.new([#{each.call(span)}], #{-span.begin}, [1], [#{span.begin}], [#{span.end}]))"
        end
      end

      # Of the list itself, neighbours are looked up.
      def within_list(stage, index)
        name = give("stencil1", :block, 0)
        return "#{name}.call" if stage.form == [:proc, 0, 0]

        spans = %i[strides least greatest].map { |what| give(what.to_s, :stencil, what) }
        "#{name}.call(::Ikra::Neighbours.new(#{give("list", :list)}, #{index}, #{spans.join(", ")}))"
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

      # @param open [Boolean] an error follows the list
      def initialize(step, list, options, open: false)
        @step = step
        limits = step.stages.take_while { |stage| %i[take drop].include?(stage.name) }
        @stages = step.stages.drop(limits.size)
        @options = options
        # which is looked into
        list = list.to_a if @stages.first&.name == :stencil
        @base = list.is_a?(Range) ? :range : :array
        @list = limits.reduce(list) { |part, stage| stage.name == :take ? part(part, 0, stage.args.first) : part(part, stage.args.first, part.size) }
        # how many positions there are after each stage; the last: in the list
        sizes = [list.size]
        @closed = false
        step.stages.each do |stage|
          @closed ||= open && stage.ends?(sizes.last)
          sizes << stage.size(sizes.last, open: open && !@closed)
        end
        @sizes = sizes.drop(limits.size).rotate(1)
      end

      # The values as an Array; the error that ended them; whether it was the chain that did.
      #
      # @param most [Integer, nil] no more are asked for
      # @param strict [Boolean] an error is raised
      def values(most, strict: false)
        total = @sizes[@stages.size - 1]
        return [part(@list, 0, most || total).to_a, nil, @closed || (!most.nil? && total >= most)] if @stages.empty?

        open = @step.holes? || @step.ending == [:flatten]
        total = [total, most].min if most && !open
        width = most && open ? [most, FIRST].max : [total, 1].max
        out = []
        from = 0
        while from < total && !(most && out.size >= most)
          to = [from + width, total].min
          list, error = chunk(from, to, strict && most.nil? && !@step.ended?)
          list, stopped = Ikra.__sieved(list, Hole, Text::STOP)
          list = list.flatten(1) if @step.ending == [:flatten]
          out = out.empty? ? list : out.concat(list)
          return [most ? out.first(most) : out, nil, true] if stopped
          break if error && !(most && out.size >= most)

          from = to
          width *= 4
          error = nil
        end
        [most ? out.first(most) : out, error, error.nil? && (@closed || (!most.nil? && out.size >= most))]
      end

      # What it computes does not come to the error after the list.
      def closed? = @closed

      # The values of each chunk together, in order.
      def fold(folder, start)
        count = @sizes[@stages.size - 1] + start.size
        chunks = (count + Operation::CHUNK - 1) / Operation::CHUNK
        text = Text.of(@stages, @step.abreast, @base, start.empty? ? :fold : :fold_from, folder)
        list, = Ikra.__sieved(section(text, 0...chunks, { start: start.first, folder: folder }), Hole, Text::STOP)
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
        return [nil, Ikra.__sieved(value, Hole, Text::STOP).first] unless value.is_a?(Buffer)

        [nil, value.to_list].tap { value.free }
      end

      # The value at a position, which has one.
      def at(index) = @stages.empty? ? part(@list, index, index + 1).first : run(index, index + 1).first

      private

      # The values from one position to another, or those before an error.
      def chunk(from, to, strict)
        [list(from, to), nil]
      rescue Located => error
        at = error.ikra.index
        error.instance_variable_set(:@ikra, Position.new(at + from, error.ikra.tick).freeze) unless from.zero?
        raise if strict

        [at.zero? ? [] : list(from, from + at), error]
      end

      # Where some are left out, and the others are numbers, that is done where the kernel runs.
      def list(from, to)
        values = run(from, to, nil, @step.holes? ? { __into: :numbers } : nil)
        values.is_a?(Buffer) ? values.to_list.tap { values.free } : values
      end

      def run(from, to, ending = nil, options = nil, within = nil)
        text = Text.of(@stages, @step.abreast, @base, ending, nil)
        base = Text.by_position?(@stages, ending) ? from...to : part(@list, from, to)
        section(text, base, { from: from }, options, within)
      end

      # The elements from one position to another, as far as there are.
      def part(list, from, to)
        return list if from.zero? && to >= list.size
        return list[from...to] || [] if @base == :array

        (list.begin + [from, list.size].min)...(list.begin + [to, list.size].min)
      end

      def section(text, base, more, options = nil, within = nil)
        block = text.block(text.given.each_value.map { |what, at, number| given(what, at, number, more) })
        Ikra.__section(:plazy, :map, base, 1, options ? @options.merge(options) : @options, block, within)
      end

      def given(what, at, number, more)
        case what
        when :list then @list
        when :first then @list.begin
        when :block then at == :fold ? more.fetch(:folder).callable : @stages[at].callable
        when :arg then @stages[at].args[number]
        when :stencil then @stages.first.stencil.public_send(at)
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
