# frozen_string_literal: true

module Ikra
  class MDArray
    # The text of a kernel, or of a lambda within one, that computes the element of an expression at a position. There
    # is one text for each form of expression: its operators, its kinds of elements, and the layout of each array.
    # Arrays and numbers are captured variables. So expressions of one form are one block to the compiler, which finds
    # the compiled code again.
    # @api private
    class Text
      # The most texts that are remembered.
      MAX_TEXTS = 1_000
      # Places are computed with wrapping operators. They are exact, because the host has checked that all places are in
      # range.
      MASK = "0x7fff_ffff_ffff_ffff"

      # The file name of a section's text in backtraces. It shows which operator raised.
      FILE = "an expression of Ikra::MDArray"
      # The file name of a lambda. It raises at its call, as Ruby's own methods do.
      INTERNAL = "<internal:ikra/mdarray>"

      @known = Memo.new(MAX_TEXTS)
      @elements = {}

      class << self
        # @param kind [:section, :lambda] a section's block, or a lambda that gives the element at a position
        # @return [Proc] for an expression's elements, row after row
        def block(expression, shape, kind) = block_of(form(expression, shape, kind), expression, shape, kind)

        # A key, which expressions with one text share, and what the captured variables hold.
        def form(expression, shape, kind) = Ikra.__form(expression, shape, kind)

        # @param form [Array] the expression's
        # @param buffers [Array<Buffer>] for the other results of an {Expression::Together::Group}
        def block_of(form, expression, shape, kind, buffers = [])
          key, *values = form
          values.concat(buffers)
          maker = @known[key] || of(key, kind == :section ? FILE : INTERNAL) { write(Form.new(expression, shape), kind) }
          block = maker.call(*values)
          block.instance_variable_set(:@expression, expression) if kind == :lambda
          block
        end

        # Where a program wrote the operator on a line of a text.
        #
        # @return [String, nil]
        def place(expression, shape, line)
          form = Form.new(expression, shape)
          step = Writer.new(form).step_on(line)
          form.nodes[step].place&.to_s if step
        end

        # A lambda that gives the element at a position of a whole buffer.
        def element(buffer, dtype)
          (@elements[dtype] ||= of([:element, dtype]) { [["b0"], "lambda { |i| ::Ikra.__at(b0, i) }"] }).call(buffer)
        end

        # A lambda that gives the position itself.
        def itself = of([:itself]) { [[], "lambda { |i| i }"] }.call

        # A lambda that gives the place of the element with a number.
        def places(layout)
          place = Place.new(layout)
          key, _, *values = Ikra.__form(place, layout.shape, :places)
          of(key) do
            form = Form.new(place, layout.shape)
            [form.names - ["b0"], "lambda do |i|\n#{Writer.new(form).place_lines.map { |line| "  #{line}\n" }.join}end"]
          end.call(*values)
        end

        # A lambda that gives the element at a position of several arrays, whose rows are beside each other.
        #
        # @param parts [Array<Part>] with as many rows each, and none without elements
        # @param rows [Integer] how many
        def joined(parts, rows)
          ends = parts.reduce([]) { |before, part| before << part.length + before.last.to_i }
          form = [rows == 1, *parts.map(&:form)]
          block = of([:joined, *form]) { joined_text(*form) }.call(*ends, *parts.flat_map { |part| part.values(rows == 1) })
          expressions = parts.filter_map { |part| part.elements.instance_variable_get(:@expression) unless part.layout }
          block.instance_variable_set(:@expression, expressions)
          block
        end

        # The function that makes the block of a text. `yield` writes the text when it is not known.
        def of(key, file = INTERNAL)
          @known[key] || @known.keep(key, make(*yield, file))
        end

        private

        # All places are in range.
        def joined_text(one_row, *forms)
          names = Array.new(forms.size) { |part| "e#{part}" } + forms.each_index.flat_map { |part| Part.names(forms[part], part, one_row) }
          lines = one_row ? ["at = i"] : ["n = e#{forms.size - 1} < 1 ? 1 : e#{forms.size - 1}", "row = i / n", "at = (i - row * n) & #{MASK}"]
          elements = forms.each_with_index.map { |form, part| Part.text(form, part, one_row) }
          chosen = elements[0...-1].each_with_index.map { |element, part| "at < e#{part} ? #{element} : " }.join
          [names, "lambda do |i|\n#{[*lines, chosen + elements.last].map { |line| "  #{line}\n" }.join}end"]
        end

        def make(parameters, source, file)
          Ikra.__evaluate("->(#{parameters.join(", ")}) { #{source} }", file)
        end

        # The names of the captured variables. Those of the buffers for other results stand behind the form's.
        def names(form) = form.names + Array.new([form.results - 1, 0].max) { |other| "p#{other}" }

        def write(form, kind)
          lines = Writer.new(form).lines
          body = lines.map { |line| "  #{line}\n" }.join
          [names(form), kind == :section ? "proc do |i|\n#{body}end" : "lambda do |i|\n#{body}end"]
        end
      end
    end

    # @api private
    class Text
      # The elements of an array as rows of a length: where they are in a buffer, or else a lambda that computes them.
      # @api private
      Part = Struct.new(:length, :layout, :elements) do
        # The names of the captured variables, and the text of an element. `at` is its place in the joined row.
        def self.names(form, part, one_row)
          return ["f#{part}"] if form == :computed

          ["b#{part}", "o#{part}", *("r#{part}" unless one_row), *("s#{part}" if form == :by)]
        end

        def self.text(form, part, one_row)
          before = part.zero? ? "" : " - e#{part - 1}"
          return "f#{part}.call((at#{before}#{" + row * (e#{part}#{before})" unless one_row}) & #{Text::MASK})" if form == :computed

          place = "o#{part}#{" + row * r#{part}" unless one_row} + (at#{before})#{" * s#{part}" if form == :by}"
          "::Ikra.__at(b#{part}, (#{place}) & #{Text::MASK})"
        end

        # What the text depends on.
        def form = layout ? (layout.strides.last == 1 ? :beside : :by) : :computed

        # What the captured variables hold.
        def values(one_row)
          return [elements] unless layout

          [elements, layout.offset, *(layout.strides.first unless one_row), *(layout.strides.last if form == :by)]
        end
      end
    end

    # A node for the elements of a layout that are only written.
    # @api private
    class Text::Place < Expression::Leaf
      def initialize(layout)
        @layout = layout
      end

      def dtype = nil
    end

    # What the text of an expression is written from (+ext/ikra/src/section/form.rs+).
    # @api private
    class Text::Form
      # The sorts of operands: the letters of their names. An operand is a number: three times its index, plus its sort.
      SORTS = %w[x v y].freeze
      SCALAR = 1

      # The operand of the whole expression.
      attr_reader :root
      # For each leaf: its dtype; how each dimension is traversed (0, 1, or +:by+ a stride; or +:flat+); and whether it
      # begins at the first place.
      attr_reader :leaves
      # For each step: name, dtype, operands, dtypes of the operands.
      attr_reader :steps
      # The operators, by the number of their step.
      attr_reader :nodes
      # The number of dimensions. Dimensions that are contiguous in all leaves are one.
      attr_reader :rank
      # Names of the captured variables.
      attr_reader :names
      # How many results there are: those of an {Expression::Together::Group}, or one.
      attr_reader :results

      def initialize(expression, shape)
        @root, @leaves, @steps, @nodes, @rank, @names = Ikra.__described(expression, shape)
        last, _, operands = @steps.last
        @results = last == :together ? operands.size : 1
      end
    end

    # Writes the lines of a form.
    # @api private
    class Text::Writer
      def initialize(form)
        @form = form
      end

      # The last line is the element.
      def lines
        @lines = []
        indices unless @form.leaves.all? { |_, ways, _| ways == :flat }
        @form.leaves.each_with_index { |(_, ways, first), leaf| @lines << "x#{leaf} = #{read("b#{leaf}", place(leaf, ways, first))}" }
        @first = @lines.size
        @form.steps.each_with_index do |step, number|
          write(number, *step)
          @ends&.push(@lines.size)
        end
        @lines << name(@form.root) if @form.results == 1
        @lines
      end

      # The step on a line of the evaluated text.
      def step_on(line)
        @ends = []
        lines
        @ends.index { |last| line - 2 < last } if line - 2 >= @first
      end

      # The last line is the place of the element of the only leaf.
      def place_lines
        @lines = []
        _, ways, first = @form.leaves.first
        indices unless ways == :flat
        @lines << place(0, ways, first)
      end

      private

      # Indices in every dimension, from a position.
      def indices
        rest = "i"
        (@form.rank - 1).downto(1) do |dimension|
          # The size is not zero, or there would be no position.
          @lines << "n#{dimension} = d#{dimension} < 1 ? 1 : d#{dimension}"
          @lines << "q#{dimension} = #{rest} / n#{dimension}"
          @lines << "j#{dimension} = (#{rest} - q#{dimension} * n#{dimension}) & #{Text::MASK}"
          rest = "q#{dimension}"
        end
        @lines << "j0 = #{rest}"
      end

      def place(leaf, ways, first)
        terms = first ? [] : ["o#{leaf}"]
        if ways == :flat
          terms << "i"
        else
          ways.each_with_index { |way, dimension| terms << (way == 1 ? "j#{dimension}" : "j#{dimension} * s#{leaf}_#{dimension}") unless way == 0 }
        end
        return terms.first || "0" if terms.size < 2 && !terms.first.to_s.include?("*")

        "(#{terms.join(" + ")}) & #{Text::MASK}"
      end

      # Reads an element that the host knows to exist.
      def read(buffer, place) = "::Ikra.__at(#{buffer}, #{place})"

      def name(operand) = "#{Text::Form::SORTS[operand % 3]}#{operand / 3}"

      # Numbers are rounded already. The text says so, to let GPU compilers use 32 bits for the operator.
      def operand(operand, dtype) = operand % 3 == Text::Form::SCALAR && dtype == :f32 ? "::Ikra.__single(#{name(operand)})" : name(operand)

      def write(number, operator, dtype, operands, dtypes)
        return store(operands) if operator == :together

        named = operands.zip(dtypes).map { |operand, kind| operand(operand, kind) }
        return convert(number, named.first, dtype) if operator == :to && DType.integer?(dtype) && DType.float?(dtypes.first)

        text = Operators.text(operator, named, dtypes, dtype)
        # Each operator on Floats of 32 bits gives a Float of 32 bits.
        text = "::Ikra.__single(#{text})" if dtype == :f32 && Operators.rounds?(operator, dtypes)
        @lines << "y#{number} = #{text}"
        refuse("y#{number}", dtype, "if y#{number} < #{DType::LIMITS.fetch(dtype).begin} || y#{number} > #{DType::LIMITS.fetch(dtype).end}") if Operators.leaves?(operator, dtypes, dtype)
      end

      # Stores all results but the first, which is the element.
      def store(operands)
        operands.drop(1).each_with_index { |operand, other| @lines << "::Ikra.__put(p#{other}, i, #{name(operand)})" }
        @lines << name(operands.first)
      end

      # A Float as an Integer. The text first checks that the Integer exists.
      def convert(number, value, dtype)
        limits = DType::LIMITS.fetch(dtype)
        # A value that leaves 64 bits would end the section, and could not be rescued. So it is tested before.
        refuse(value, dtype, "unless #{value} >= -9223372036854775808.0 && #{value} < 9223372036854775808.0")
        @lines << "y#{number} = #{value}.truncate"
        refuse("y#{number}", dtype, "if y#{number} < #{limits.begin} || y#{number} > #{limits.end}") if dtype != :i64
      end

      # Raises for a value that a kind of Integers cannot hold.
      def refuse(value, dtype, condition)
        limits = DType::LIMITS.fetch(dtype)
        @lines << "raise ::Ikra::MDArray::Unfit, \"\#{#{value}} does not fit #{dtype} (#{limits.begin} to #{limits.end})\" #{condition}"
      end
    end
    private_constant :Text
  end
end
