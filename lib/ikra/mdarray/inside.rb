# frozen_string_literal: true

module Ikra
  # Arrays inside blocks that run in kernels: what is called there.
  class MDArray
    # @api private
    # What a call of a method in a kernel calls: a lambda, which has an array's elements and sizes around it. nil: kernels do
    # not know the method. Lambdas of arrays of one form share their code.
    #
    # @param name [Symbol]
    # @return [Proc, nil]
    def __kernel(name)
      fixed = frozen? || storage.read_only
      # one buffer for those methods that read and those that write
      buffer = fixed ? storage.buffer : storage.writable
      case name
      when :[], :dig then Inside.reading(__layout, buffer)
      when :[]= then Inside.writing(__layout, (buffer unless fixed), dtype)
      when :size, :length then Inside.constant(size)
      when :ndim, :rank then Inside.constant(ndim)
      when :shape then Inside.constant(shape)
      when :empty? then Inside.constant(empty?)
      end
    end

    # Texts of the lambdas.
    # @api private
    module Inside
      class << self
        def reading(layout, buffer)
          return if layout.rank > MOST_INDICES

          lambda_of(:reading, layout, buffer) do |form|
            ["lambda do |#{form.indices}|\n#{form.bounds}  #{form.inside} ? ::Ikra.__at(b, #{form.place}) : b[b.size]\nend"]
          end
        end

        def writing(layout, buffer, dtype)
          return frozen(layout.rank) if buffer.nil?
          return if layout.rank > MOST_INDICES

          lambda_of(:"writing_#{dtype}", layout, buffer) do |form|
            ["lambda do |#{form.indices}, value|\n#{form.bounds}" \
             "  raise ::IndexError, \"index #{form.shown} is outside of the array's shape\" unless #{form.inside}\n" \
             "#{store(dtype, form)}  b[#{form.place}] = stored\n  value\nend"]
          end
        end

        def constant(value) = Text.of([:constant]) { [["v"], "lambda { v }"] }.call(value)

        private

        def frozen(rank)
          names = Array.new(rank) { |dimension| "i#{dimension}" }.join(", ")
          Text.of([:frozen, rank]) { [[], "lambda { |#{names}, value| raise ::FrozenError, \"can't modify frozen Ikra::MDArray\" }"] }.call
        end

        def lambda_of(kind, layout, buffer)
          form = Form.new(layout)
          maker = Text.of([:inside, kind, *form.key]) { [["b", *form.names], *yield(form)] }
          maker.call(buffer, *form.values)
        end

        # Conversions are those of {DType.store}.
        def store(dtype, form)
          limits = DType::LIMITS[dtype]
          case dtype
          when :f64, :f32 then "  stored = 1.0 * value\n"
          when :i64 then "  stored = value.truncate\n"
          when :i32, :u8
            "  stored = value.truncate\n" \
            "  raise ::RangeError, \"element #{form.shown}: \#{stored} does not fit #{dtype} (#{limits.begin} to #{limits.end})\" if stored < #{limits.begin} || stored > #{limits.end}\n"
          when :bool then "  raise ::TypeError, \"what is stored is neither true nor false\" unless value == true || value == false\n  stored = value\n"
          else "  stored = value\n"
          end
        end
      end

      # How an element's place is computed from indices.
      class Form
        def initialize(layout)
          @layout = layout
          @packed = layout.packed?
        end

        def key = [@layout.rank, @packed]

        def rank = @layout.rank

        def names = [*Array.new(rank) { |dimension| "d#{dimension}" }, *(["o", *Array.new(rank) { |dimension| "s#{dimension}" }] unless @packed)]

        def values = [*@layout.shape, *([@layout.offset, *@layout.strides] unless @packed)]

        def indices = Array.new(rank) { |dimension| "i#{dimension}" }.join(", ")

        # Negative ones count from the end; under the mask, what is still negative is beyond any size.
        def bounds = Array.new(rank) { |dimension| "  k#{dimension} = i#{dimension} < 0 ? (i#{dimension} + d#{dimension}) & #{Text::MASK} : i#{dimension}\n" }.join

        def inside = Array.new(rank) { |dimension| "k#{dimension} < d#{dimension}" }.join(" && ")

        # For messages.
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
