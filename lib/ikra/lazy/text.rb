# frozen_string_literal: true

module Ikra
  class Lazy
    # The text of one kernel: an ordinary Ruby block that computes the value at a position through all its stages. The
    # blocks of the stages are captured Procs, which are compiled into the code that calls them.
    #
    # There is one {Text} for each sequence of stage shapes and each code of their blocks. So each is a block of its own
    # to the compiler, which finds the compiled code again.
    # @api private
    class Text
      FOLDS = %i[fold fold_from].freeze
      # Stages that read positions other than their own.
      LOOKING = %i[stencil each_slice].freeze
      # The most texts that are remembered.
      MAX_TEXTS = 1_000
      # What blocks emit pairs to, and what is left of them.
      EMITTERS = { emitted: ["Emitter", "out.last"], added: %w[Adder nil], counted: %w[Counter nil] }.freeze

      @known = Memo.new(MAX_TEXTS)

      class << self
        # @param stages [Array<Stage>]
        # @param abreast [Integer] how many values each element has side by side
        # @param base [:array, :range, :slab, :part] what elements are looked up in: all of a list, a Range, a Range in
        #   a text that does not ask for the index of an element, or a part of a list
        # @param ending [Symbol, nil] what becomes of the values. nil: all are kept. +:there+: whether there is one.
        #   +:stop+: whether the chain ends there. +:fold+, +:fold_from+: those of each chunk are combined, from the
        #   first or from a start. +:emitted+, +:added+, +:counted+: a block emits pairs for each. Others: the values of
        #   one element after +flat_map+ are reduced.
        # @param folder [Stage, nil] what combines two of them, or emits pairs for one
        def of(stages, abreast, base, ending, folder)
          shape = [abreast, base, ending, folder&.shape, *stages.map(&:shape)]
          @known[shape] || @known.keep(shape, new(stages, abreast, base, ending, folder))
        end

        # Whether the values of a chain are the joined arrays of its last stage.
        def joined?(stages) = stages.last&.name == :flat_map && stages.one? { |stage| stage.name == :flat_map }

        # Whether kernels of these stages compute by position, and not from element to element.
        def by_position?(stages, ending) = FOLDS.include?(ending) || stages.any? { |stage| LOOKING.include?(stage.name) }
      end

      # The lines of a text. Their loops are all closed together at the end.
      class Lines
        include Enumerable

        def initialize
          @lines = []
          @depth = 0
        end

        def <<(line)
          @lines << "#{"  " * @depth}#{line}"
          self
        end

        def concat(lines) = lines.each { |line| self << line }

        def open(line)
          self << line
          @depth += 1
        end

        def close
          while @depth.positive?
            @depth -= 1
            self << "end"
          end
          self
        end

        def each(&block) = @lines.each(&block)
      end
      private_constant :Lines

      # Why the stages after +flat_map+ are to be in a kernel of their own. nil: they are not.
      attr_accessor :given_up

      # Names of captured variables and what they hold: +[:list]+, +[:block, stage]+, +[:arg, stage, number]+, …
      attr_reader :given, :source

      def initialize(stages, abreast, base, ending, folder)
        @stages = stages
        @abreast = abreast
        @base = base
        @folder = folder
        @given = {}
        @names = 0
        @producers = []
        # Whether positions have a fixed distance from the position of this text.
        @fixed = !FOLDS.include?(ending)
        @by_position = Text.by_position?(stages, ending)
        folds = FOLDS.include?(ending)
        @joined = stages.size - 1 if ending.nil? && Text.joined?(stages)
        body = folds ? fold(ending) : element(ending)
        parameter = folds ? "chunk" : @by_position ? "i" : "x"
        @source = "proc do |#{parameter}|\n#{body.map { |line| "  #{line}\n" }.join}end"
        @looks = !@producers.empty?
        @make = Ikra.__evaluate("->(#{@given.keys.join(", ")}) { #{[*@producers, @source].join("\n")} }", name)
        # A text outlives the blocks and what they hold.
        @stages = @folder = nil
      end

      # Whether it has a stencil that reads values of other stages.
      def looks? = @looks

      # The block, with the values of its captured variables.
      def block(values) = @make.call(*values)

      private

      # The position of the first block in a program's source.
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
        lines = Lines.new
        emitter, left = EMITTERS[ending]
        return emitted(lines, emitter, left) if emitter

        there, stop = ending == :there, ending == :stop
        ways = { hole: there || stop ? "next false" : "next #{give("hole", :hole)}", stop: stop ? "next true" : "next #{give("stop", :stop)}" }
        return elements(ending, lines, ways) if flat?(@stages.size) && @joined.nil?

        values = value(@stages.size - 1, "i", lines, **ways)
        lines << (there ? "true" : stop ? "false" : packed(values))
      end

      # A block emits pairs for all values of one element. What is left of these is the last pair, from which a chain
      # leads to the others, or nothing, where tables group them.
      def emitted(lines, emitter, left)
        lines << "out = ::Ikra::#{emitter}.new"
        values = value(@stages.size - 1, "i", lines, hole: "next #{left}")
        lines << call(@folder, [packed(values), "out"], :fold, lines)
        lines.close
        lines << left
      end

      # After +flat_map+: an array of the values of one element, or their reduction.
      def elements(ending, lines, ways)
        lines << { nil => "out = []", count: "out = 0", sum: "out = 0" }.fetch(ending, "out = nil")
        # With this, the values of all elements are arrays.
        ways[:hole] = "next out" if ending.nil?
        lines << "other = false" if %i[sum min max].include?(ending)
        value = packed(value(@stages.size - 1, "i", lines, **ways))
        case ending
        when nil then lines << "out << #{value}"
        when :count then lines << "out += 1"
        when :sum then numbers(lines, value, "Integer", "out += #{value}")
        # A NaN stays, so that it is reported.
        else numbers(lines, value, "Integer", "Float", "out = #{value} if out.nil? || #{value} #{ending == :min ? "<" : ">"} out || #{value} != #{value}")
        end
        lines.close
        case ending
        when nil, :count then lines << "out"
        when :sum then lines << "other ? #{give("stop", :stop)} : out"
        else lines << "other ? #{give("stop", :stop)} : out.nil? ? #{give("hole", :hole)} : out"
        end
      end

      # Adds a line for values of these classes. Where a value may be of another class, the result is no number, and the
      # reduction is not computed in this way.
      def numbers(lines, value, *classes, line)
        lines << "if #{classes.map { |name| "#{value}.is_a?(::#{name})" }.join(" || ")}" << "  #{line}" << "else" << "  other = true" << "end"
      end

      # Whether several values of an element may reach a stage.
      def flat?(at) = @stages.first(at).any? { |stage| stage.name == :flat_map }

      # The statement that leaves out a value at a stage.
      def leave(at, ways) = flat?(at) ? "next" : ways.fetch(:hole)

      # `preduce` over the values of a chunk (+__fold+ in the prelude).
      def fold(ending)
        width = give("width", :chunk)
        size = give("size", :size, @stages.size - 1)
        lines = ["i = #{@base == :slab ? "chunk" : "::Ikra.index"} * #{width}#{" - 1" if ending == :fold_from}", "last = i + #{width}", "last = #{size} if last > #{size}"]
        holes = @stages.any? { |stage| Plan::SHIFTING.include?(stage.name) }
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
        inner = Lines.new
        values = value(@stages.size - 1, "at", inner, hole: "next")
        inner << "memo = none ? #{packed(values)} : #{call(@folder, ["memo", packed(values)], :fold)}" << "none = false"
        inner.close
        lines << "while i < last" << "  at = i" << "  i += 1"
        lines.concat(inner.map { |line| "  #{line}" })
        lines << "end" << "none ? #{give("hole", :hole)} : memo"
      end

      # The values at a position after a stage: one, or several that Ruby's lazy chains pass side by side.
      def value(at, index, lines, **ways)
        return leaf(index, lines) if at.negative?

        stage = @stages[at]
        __send__(:"on_#{stage.name}", stage, at, index, lines, ways)
      end

      def leaf(index, lines)
        return abreast("x") unless @by_position

        place = @base == :array ? index : "#{give("first", :first)} + #{index}"
        abreast(assign(%i[range slab].include?(@base) ? place : "#{give("list", :list)}[#{place}]", lines).first)
      end

      def abreast(element) = @abreast == 1 ? [element] : Array.new(@abreast) { |k| "#{element}[#{k}]" }

      def position(index, lines)
        return index if @by_position

        return "(x - #{give("first", :first)})" if @base == :slab

        lines << "i = ::Ikra.index + #{give("from", :from)}" unless @given.key?("from")
        "i"
      end

      # A lambda that computes the values of the stages before this one. Gives the text that calls it.
      def below(at, lines)
        name = fresh("at")
        index = fresh("i")
        lines.concat(element_at(name, index, at, fixed: false))
        ->(place) { "#{name}.call(#{place})" }
      end

      # The same for a stencil, which reads positions around its own. Its neighbours read most of these, too. So it is a
      # captured lambda, which becomes a function of the kernel ({Ikra.__staged}).
      def around(at, index)
        name = fresh("at")
        @producers.concat(element_at(name, fresh("i"), at, fixed: true))
        sizes = @fixed ? extents(at) : []
        # Takes an offset for each dimension, and gives the values there.
        lambda do |offset|
          away = @fixed ? offset : []
          "::Ikra.__staged(#{[name, moved(index, offset), *away, *sizes].join(", ")})"
        end
      end

      def element_at(name, index, at, fixed:)
        before, @fixed = @fixed, fixed
        inner = Lines.new
        values = value(at, index, inner)
        @fixed = before
        ["#{name} = lambda do |#{index}|", *inner.map { |line| "  #{line}" }, "  #{packed(values)}", "end"]
      end

      # The number of positions after a stage, in each dimension.
      def extents(at)
        dimensions = @stages[at].stencil.sizes.size if @stages[at].name == :stencil
        return [give("size#{at + 1}", :size, at)] unless dimensions && dimensions > 1

        Array.new(dimensions) { |d| give("extent#{d}", :grid, :sizes, d) }
      end

      # A position, moved by an offset in each dimension.
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

      # Calls a proc. It takes as many values as it has parameters, and a single array by its elements, where these may
      # be known one by one.
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

      # As many values as a block takes, with nil for missing ones.
      def filled(values, least, most) = (most ? values.first(most) : values) + (["nil"] * [least - values.size, 0].max)

      def on_map(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        assign(call(stage, values, at, lines), lines)
      end

      # Joins arrays where no stage follows in the kernel. Else the following stages go over each.
      def on_flat_map(stage, at, index, lines, ways)
        given = on_map(stage, at, index, lines, ways)
        return given if at == @joined

        value = given.first
        list, place = fresh("x"), fresh("i")
        lines << "#{list} = #{value}.is_a?(::Array) ? #{value} : #{value}.respond_to?(:to_ary) ? #{value}.to_ary || [#{value}] : [#{value}]"
        lines << "raise ::TypeError, 'no array' unless #{list}.is_a?(::Array)" << "#{place} = 0"
        lines.open("while #{place} < #{list}.size")
        assign("#{list}[#{place}]", lines).tap { lines << "#{place} += 1" }
      end

      def on_map_packed(stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        assign(call(stage, values, at, lines, together: true), lines)
      end
      alias on_map_zipped on_map_packed

      def on_select(stage, at, index, lines, ways, test = "unless")
        values = value(at - 1, index, lines, **ways)
        lines << "#{leave(at, ways)} #{test} #{call(stage, values, at, lines, together: true)}"
        values
      end

      def on_reject(stage, at, index, lines, ways) = on_select(stage, at, index, lines, ways, "if")

      def on_compact(_stage, at, index, lines, ways)
        values = value(at - 1, index, lines, **ways)
        lines << "#{leave(at, ways)} if #{values.first}.nil?" if values.size == 1
        values
      end

      def on_filter_map(stage, at, index, lines, ways)
        values = on_map(stage, at, index, lines, ways)
        lines << "#{leave(at, ways)} unless #{values.first}"
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
        [packed(values)]
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

      # Whether some neighbour is outside of the list.
      def outside(stencil, at, index, lines)
        bounds = stencil.least.zip(stencil.greatest)
        return sides(index, bounds.first, give("size#{at}", :size, at - 1)) if bounds.size == 1

        bounds.each_with_index.map do |sides, d|
          extent = give("extent#{d}", :grid, :sizes, d)
          # No size is zero, or there would be no position. Range analysis learns this from the text.
          stride = d == bounds.size - 1 ? 1 : give("stride#{d}", :grid, :strides, d)
          whole, part = assign("#{extent} < 1 ? 1 : #{extent}", lines).first, assign("#{stride} < 1 ? 1 : #{stride}", lines).first
          here = assign("#{index} / #{part}#{" % #{whole}" unless d.zero?}", lines).first
          sides(here, sides, extent)
        end.join(" || ")
      end

      def sides(index, (least, greatest), size) = "#{index} + #{least} < 0 || #{index} + #{greatest} >= #{size}"

      # Calls a stencil's block with neighbours that are computed.
      def neighbours(stage, at, before)
        stencil = stage.stencil
        all = ->(places) { places.map(&before).join(", ") }
        called(stage, at, all) do
          spans = stencil.least.zip(stencil.greatest)
          *places = spans.map { |from, to| (from..to).to_a }.reduce { |one, other| one.product(other).map(&:flatten) }
          box = spans.map { |from, to| to - from + 1 }
          strides = box.each_index.map { |d| box.drop(d + 1).reduce(1, :*) }
          centre = stencil.least.zip(strides).sum { |from, stride| -from * stride }
          "::Ikra::Neighbours.new([#{all.call(places.map { |place| [*place] })}], #{centre}, #{box.size}, #{strides.zip(*spans.transpose).join(", ")})"
        end
      end

      # The same with neighbours that are looked up.
      def within_list(stage, index)
        list = give("list", :list)
        called(stage, 0, ->(places) { places.map { |place| "#{list}[#{moved(index, place)}]" }.join(", ") }) do
          dimensions = stage.stencil.least.size
          reaches = Array.new(dimensions) { |d| %i[strides least greatest].map { |what| give("#{what}#{d}", :grid, what, d) } }
          "::Ikra::Neighbours.new(#{list}, #{index}, #{dimensions}, #{reaches.join(", ")})"
        end
      end

      # Neighbours in the form in which the block takes them. The last argument gives all of them in one.
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
  end
end
