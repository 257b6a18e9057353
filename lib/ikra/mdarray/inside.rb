# frozen_string_literal: true

module Ikra
  # Methods of arrays within blocks that run in kernels.
  class MDArray
    # @api private
    # The lambda that a kernel calls for a method. It captures the array's elements and sizes. nil: kernels do not know
    # the method. Lambdas of arrays of one form share their code.
    #
    # @param name [Symbol]
    # @return [Proc, nil]
    def __kernel(name)
      fixed = frozen? || storage.read_only
      # One buffer serves methods that read and methods that write.
      buffer = fixed ? storage.buffer : storage.writable
      case name
      when :[], :dig then Inside.reading(__layout, buffer)
      when :[]= then Inside.writing(__layout, (buffer unless fixed), dtype)
      when :"[]+=", :"[]-=", :"[]&=", :"[]|=", :"[]^=" then Inside.adding(__layout, buffer, dtype, name[2]) unless fixed
      when :size, :length then Inside.constant(size)
      when :ndim, :rank then Inside.constant(ndim)
      when :shape then Inside.constant(shape)
      when :empty? then Inside.constant(empty?)
      end
    end

    # The texts of the lambdas.
    # @api private
    module Inside
      class << self
        def reading(layout, buffer)
          return if layout.rank > MAX_INDICES

          lambda_of(:reading, layout, buffer) do |form|
            ["lambda do |#{form.parameters}|\n#{form.integers}#{form.bounds}#{form.unless_inside("return b[b.size]")}  ::Ikra.__at(b, #{form.place})\nend"]
          end
        end

        def writing(layout, buffer, dtype)
          return if layout.rank > MAX_INDICES
          return frozen(layout) if buffer.nil?

          lambda_of(:"writing_#{dtype}", layout, buffer) do |form|
            ["lambda do |#{form.parameters}, value|\n#{form.integers}#{form.bounds}" \
             "#{form.unless_inside("raise ::IndexError, \"index #{form.shown} is outside of the array's shape\"")}" \
             "#{store(dtype, form)}  b[#{form.place}] = stored\n  value\nend"]
          end
        end

        # A text that does +array[…] += value+ as one atomic step, where memory can, so that no addition is lost. nil:
        # the element is read, and then written.
        def adding(layout, buffer, dtype, operator)
          kinds = dtype == :i64 ? "::Integer === value" : ("::Integer === value || ::Float === value" if dtype == :f64 && "+-".include?(operator))
          return if layout.rank > MAX_INDICES || kinds.nil?

          lambda_of(:"adding_#{dtype}_#{operator}", layout, buffer) do |form|
            ["lambda do |#{form.parameters}, value|\n#{form.integers}#{form.bounds}" \
             "#{form.unless_inside("nil #{operator} value")}" \
             "  if #{kinds}\n  b[#{form.place}] #{operator}= value\n  else\n" \
             "  value = b[#{form.place}] #{operator} value\n#{store(dtype, form)}  b[#{form.place}] = stored\n  end\n  nil\nend"]
          end
        end

        def constant(value) = Text.of([:constant]) { [["v"], "lambda { v }"] }.call(value)

        private

        def frozen(layout)
          Text.of([:frozen, layout.rank]) { [[], "lambda { |#{Form.new(layout).parameters}, value| raise ::FrozenError, \"can't modify frozen Ikra::MDArray\" }"] }.call
        end

        def lambda_of(kind, layout, buffer)
          form = Form.new(layout)
          maker = Text.of([:inside, kind, *form.key]) { [["b", *form.names], *yield(form)] }
          maker.call(buffer, *form.values)
        end

        # Converts a value as {DType.store} does.
        def store(dtype, form)
          case dtype
          when :f64, :f32 then number(form, "1.0 * value")
          when :i64, :i32, :u8 then fitting(dtype, form) + number(form, "value.truncate")
          when :bool then "  raise ::TypeError, \"element #{form.shown}: what is stored is neither true nor false\" unless value == true || value == false\n  stored = value ? true : false\n"
          else "  stored = value\n"
          end
        end

        def number(form, stored)
          "  raise ::TypeError, \"element #{form.shown}: what is stored is not a number\" unless ::Numeric === value\n  stored = #{stored}\n"
        end

        def fitting(dtype, form)
          limits = DType::LIMITS.fetch(dtype)
          low = dtype == :i64 ? "value >= #{limits.begin.to_f}" : "value > #{limits.begin - 1}.0"
          refused = "raise ::RangeError, \"element #{form.shown}: \#{value} does not fit #{dtype} (#{limits.begin} to #{limits.end})\""
          "  if ::Float === value\n" \
            "    raise ::FloatDomainError, \"element #{form.shown}: \#{value}\" unless value.finite?\n" \
            "    #{refused} unless #{low} && value < #{limits.end + 1}.0\n" \
            "#{"  elsif ::Integer === value\n    #{refused} if value < #{limits.begin} || value > #{limits.end}\n" if dtype != :i64}" \
            "  end\n"
        end
      end

      # Computes the place of an element from its indices.
      class Form
        VIEW = "in a block, array[…] is an element: give it an Integer for each dimension. Rows and other parts are views: make them outside of the block"

        def initialize(layout)
          @layout = layout
          @packed = layout.packed?
        end

        def key = [@layout.rank, @packed]

        def rank = @layout.rank

        def names = [*Array.new(rank) { |dimension| "d#{dimension}" }, *(["o", *Array.new(rank) { |dimension| "s#{dimension}" }] unless @packed)]

        def values = [*@layout.shape, *([@layout.offset, *@layout.strides] unless @packed)]

        # An index for each dimension. With fewer the call would be for a part.
        def parameters = Array.new(rank) { |dimension| dimension.zero? ? "i0" : "i#{dimension} = (raise ::Ikra::CompileError, #{VIEW.dump})" }.join(", ")

        # Objects that plain Ruby takes as indices, but kernels do not.
        def integers
          Array.new(rank) do |dimension|
            "  raise ::TypeError, \"\#{i#{dimension}.nil? ? :nil : i#{dimension}} is no index of an element\" if i#{dimension}.nil? || ::Float === i#{dimension}\n" \
              "  raise ::Ikra::CompileError, #{VIEW.dump} unless ::Integer === i#{dimension}\n"
          end.join
        end

        # Negative indices count from the end. An index that is still negative becomes greater than any size by the
        # mask.
        def bounds = Array.new(rank) { |dimension| "  k#{dimension} = i#{dimension} < 0 ? (i#{dimension} + d#{dimension}) & #{Text::MASK} : i#{dimension}\n" }.join

        # Leaves for each index that is outside. One check for each is what passes move out of loops.
        def unless_inside(leave) = Array.new(rank) { |dimension| "  #{leave} unless k#{dimension} < d#{dimension}\n" }.join

        # The indices, for messages.
        def shown = "[#{Array.new(rank) { |dimension| "\#{i#{dimension}}" }.join(", ")}]"

        def place
          terms = Array.new(rank) do |dimension|
            next "k#{dimension} * s#{dimension}" unless @packed

            ["k#{dimension}", *(dimension + 1...rank).map { |inner| "d#{inner}" }].join(" * ")
          end
          terms.unshift("o") unless @packed
          terms == ["k0"] ? "k0" : "((#{terms.join(" + ")}) & #{Text::MASK})"
        end
      end
      private_constant :Form
    end
    private_constant :Inside
  end
end
