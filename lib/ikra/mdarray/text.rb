# frozen_string_literal: true

module Ikra
  class MDArray
    # The text of a kernel, or of a lambda within one, that computes the element of an expression at a position. There is
    # one for each form of expression: operators, kinds of elements, and how the elements of each array lie. What it is
    # computed from are captured variables, so expressions of one form are one block to the compiler, and what was compiled is found again.
    # @api private
    class Text
      # As many texts are remembered.
      MOST = 1_000
      # Places are computed with wrapping operators, which are exact: the host has seen to it that all of them are in range.
      MASK = "0x7fff_ffff_ffff_ffff"

      # What the text of a section is called in backtraces, by which it is known which operator raised.
      FILE = "an expression of Ikra::MDArray"
      # What a lambda is called: it raises where it is called, as Ruby's own methods do.
      INTERNAL = "<internal:ikra/mdarray>"

      @known = {}
      @elements = {}

      class << self
        # @param kind [:section, :lambda] a section's block, or a lambda that gives the element at a position
        # @return [Proc] for an expression's elements, row after row
        def block(expression, shape, kind)
          form = Form.new(expression, shape)
          block = of(form.key << kind, kind == :section ? FILE : INTERNAL) { write(form, kind) }.call(*form.values)
          block.instance_variable_set(:@expression, expression) if kind == :lambda
          block
        end

        # Where a program wrote the operator down that is on a line of a text.
        #
        # @return [String, nil]
        def place(expression, shape, line)
          form = Form.new(expression, shape)
          step = Writer.new(form).step_on(line)
          form.nodes[step].place if step
        end

        # A lambda that gives the element at a position of a whole buffer.
        def element(buffer, dtype)
          (@elements[dtype] ||= of([:element, dtype]) { [["b0"], "lambda { |i| ::Ikra.__at(b0, i) }"] }).call(buffer)
        end

        # A lambda that gives the position itself.
        def itself = of([:itself]) { [[], "lambda { |i| i }"] }.call

        # A lambda that gives where the element with a number is.
        def places(layout)
          form = Form.new(Place.new(layout), layout.shape)
          of(form.key << :places) { [form.names - ["b0"], "lambda do |i|\n#{Writer.new(form).place_lines.map { |line| "  #{line}\n" }.join}end"] }.call(*form.values.drop(1))
        end

        # What makes the block of a text: `yield` writes it when it is not known.
        def of(key, file = INTERNAL)
          @known[key] || begin
            made = make(*yield, file)
            @known.shift if @known.size >= MOST
            # another thread, or a signal's handler, may have been first
            @known[key] ||= made
          end
        end

        private

        def make(parameters, source, file)
          Ikra.__evaluate("->(#{parameters.join(", ")}) { #{source} }", file)
        end

        def write(form, kind)
          lines = Writer.new(form).lines
          body = lines.map { |line| "  #{line}\n" }.join
          [form.names, kind == :section ? "proc do |i|\n#{body}end" : "lambda do |i|\n#{body}end"]
        end
      end
    end

    # Stands for the elements of a layout that are only written.
    # @api private
    class Text::Place < Expression::Leaf
      def initialize(layout)
        @layout = layout
      end

      def dtype = nil
    end

    # One walk over an expression: what its text depends on, and what its captured variables hold.
    # @api private
    class Text::Form
      # What operands are, and the letters of their names. An operand is three times its number and what it is.
      KINDS = %w[x v y].freeze
      LEAF, SCALAR, STEP = 0, 1, 2

      # What the whole is, an operand.
      attr_reader :root
      # Of leaves: dtype, how each dimension is gone over (0, 1, or +:by+ a stride), whether it begins at the first place.
      attr_reader :leaves
      # Name, dtype, operands, dtypes of the operands.
      attr_reader :steps
      # The operators, by the number of their step.
      attr_reader :nodes
      # Sizes of dimensions, after those are taken together that lie so in all leaves.
      attr_reader :sizes

      def initialize(expression, shape)
        @found = {}.compare_by_identity
        @layouts = []
        @buffers = []
        @dtypes = []
        @scalars = []
        @steps = []
        @nodes = []
        @root = visit(expression, shape)
        # nearly always
        return lie_flat if @layouts.all?(&:packed?)

        @sizes, @strides = together(shape)
        @leaves = @buffers.each_index.map { |leaf| look(leaf) }
      end

      # Equal for forms that have the same text.
      def key
        key = [@root, @flat ? :flat : rank]
        @steps.each { |name, dtype, operands, dtypes| key.push(name, dtype).concat(operands, dtypes) }
        @scalars.each { |scalar| key << scalar.dtype }
        key.concat(@flat ? @dtypes : @leaves.flatten)
      end

      def rank = @sizes.size

      # Names of the captured variables, and what they hold.
      def names
        [*@buffers.each_index.map { |leaf| "b#{leaf}" }, *@scalars.each_index.map { |scalar| "v#{scalar}" }, *(1...rank).map { |dimension| "d#{dimension}" }, *places.map(&:first)]
      end

      def values
        return @buffers + @scalars.map(&:value) if @flat

        [*@buffers, *@scalars.map(&:value), *@sizes.drop(1), *places.map(&:last)]
      end

      private

      def lie_flat
        @flat = true
        @sizes = @strides = [].freeze
        @leaves = @dtypes.map { |dtype| [dtype, :flat, true] }
      end

      # Offsets and strides that the text does not have.
      def places
        @leaves.each_with_index.flat_map do |(_, ways, first), leaf|
          next [] if ways == :flat && first

          strides = ways == :flat ? [] : ways.each_index.filter_map { |dimension| ["s#{leaf}_#{dimension}", @strides[leaf][dimension]] if ways[dimension] == :by }
          first ? strides : [["o#{leaf}", @layouts[leaf].offset], *strides]
        end
      end

      def visit(node, shape)
        @found[node] ||=
          case node
          when Expression::Scalar
            @scalars << node
            (3 * @scalars.size) - 3 + SCALAR
          when Expression::Leaf then leaf(node.buffer, node.dtype, node.layout.broadcast(shape))
          else
            operands = node.operands
            operands ? step(node, operands, shape) : leaf(node.buffer, node.dtype, Layout.packed(node.shape).broadcast(shape))
          end
      end

      # Arrays that are the same are read once.
      def leaf(buffer, dtype, layout)
        number = 0
        while number < @buffers.size
          return (3 * number) + LEAF if @buffers[number].equal?(buffer) && @layouts[number] == layout

          number += 1
        end
        @buffers << buffer
        @dtypes << dtype
        @layouts << layout
        (3 * number) + LEAF
      end

      def step(node, operands, shape)
        found = operands.map { |operand| visit(operand, shape) }
        @nodes << node
        @steps << [node.name, node.dtype, found, operands.map(&:dtype)]
        (3 * @steps.size) - 3 + STEP
      end

      # Dimensions of size 1 are left out, and neighbouring ones are one where that is one stride in every leaf.
      def together(shape)
        sizes = []
        strides = @layouts.map { [] }
        shape.each_with_index do |size, dimension|
          next if size == 1

          inner = @layouts.map { |layout| layout.strides[dimension] }
          if !sizes.empty? && strides.each_with_index.all? { |outer, leaf| outer.last == inner[leaf] * size }
            sizes[-1] *= size
            strides.each_with_index { |outer, leaf| outer[-1] = inner[leaf] }
          else
            sizes << size
            strides.each_with_index { |outer, leaf| outer << inner[leaf] }
          end
        end
        [sizes, strides]
      end

      def look(leaf)
        strides = @strides[leaf]
        ways = strides == Layout.strides(@sizes) ? :flat : strides.map { |stride| [0, 1].include?(stride) ? stride : :by }
        [@dtypes[leaf], ways, @layouts[leaf].offset.zero?]
      end
    end

    # Writes the lines of a form.
    # @api private
    class Text::Writer
      def initialize(form)
        @form = form
      end

      # The last of them is the element.
      def lines
        @lines = []
        indices unless @form.leaves.all? { |_, ways, _| ways == :flat }
        @form.leaves.each_with_index { |(_, ways, first), leaf| @lines << "x#{leaf} = #{read("b#{leaf}", place(leaf, ways, first))}" }
        @first = @lines.size
        @form.steps.each_with_index do |step, number|
          write(number, *step)
          @ends&.push(@lines.size)
        end
        @lines << name(@form.root)
      end

      # The step on a line of the evaluated text, whose first line is its beginning.
      def step_on(line)
        @ends = []
        lines
        @ends.index { |last| line - 2 < last } if line - 2 >= @first
      end

      # The last of them is where the element of the only leaf is.
      def place_lines
        @lines = []
        _, ways, first = @form.leaves.first
        indices unless ways == :flat
        @lines << place(0, ways, first)
      end

      private

      # What stands at a position in every dimension.
      def indices
        rest = "i"
        (@form.rank - 1).downto(1) do |dimension|
          # it is not zero, or there would be no position
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

      # An element, where the host knows that there is one.
      def read(buffer, place) = "::Ikra.__at(#{buffer}, #{place})"

      def name(operand) = "#{Text::Form::KINDS[operand % 3]}#{operand / 3}"

      # Numbers are rounded already: it says so to GPUs' compilers, which then know that 32 bits are enough for the operator.
      def operand(operand, dtype) = operand % 3 == Text::Form::SCALAR && dtype == :f32 ? "::Ikra.__single(#{name(operand)})" : name(operand)

      def write(number, operator, dtype, operands, dtypes)
        named = operands.zip(dtypes).map { |operand, kind| operand(operand, kind) }
        return convert(number, named.first, dtype) if operator == :to && DType.integer?(dtype) && DType.float?(dtypes.first)

        text = Operators.text(operator, named, dtypes, dtype)
        # each operator on Floats of 32 bits gives one
        text = "::Ikra.__single(#{text})" if dtype == :f32 && Operators.rounds?(operator, dtypes)
        @lines << "y#{number} = #{text}"
        refuse("y#{number}", dtype, "if y#{number} < #{DType::LIMITS.fetch(dtype).begin} || y#{number} > #{DType::LIMITS.fetch(dtype).end}") if Operators.leaves?(operator, dtypes, dtype)
      end

      # A Float as an Integer, of which it is known then that there is one.
      def convert(number, value, dtype)
        limits = DType::LIMITS.fetch(dtype)
        # what leaves 64 bits ends the section, and cannot be rescued: it is found out before
        refuse(value, dtype, "unless #{value} >= -9223372036854775808.0 && #{value} < 9223372036854775808.0")
        @lines << "y#{number} = #{value}.truncate"
        refuse("y#{number}", dtype, "if y#{number} < #{limits.begin} || y#{number} > #{limits.end}") if dtype != :i64
      end

      # What an Integer of a kind cannot hold.
      def refuse(value, dtype, condition)
        limits = DType::LIMITS.fetch(dtype)
        @lines << "raise ::Ikra::MDArray::Unfit, \"\#{#{value}} does not fit #{dtype} (#{limits.begin} to #{limits.end})\" #{condition}"
      end
    end
    private_constant :Text
  end
end
