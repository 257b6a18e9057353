# frozen_string_literal: true

module Ikra
  class MDArray
    # What does not fit the device's memory, computed stretch by stretch: the elements of arrays go there in parts, and what they come to is kept on the
    # host. While the device computes one stretch, the next goes up; then what the first came to comes down.
    #
    # Here: how large stretches and other parts are, and what becomes of what they come to. Not here: parts of expressions ({Stretch}), and kernels.
    # @api private
    module Tiles
      # Stretches are halved until they fit, and are no smaller.
      LEAST = 1 << 14
      # Nothing beside a stretch.
      NONE = [0, 0].freeze
      # What is not done stretch by stretch: it depends on the others, draws, or changes something.
      Refused = Class.new(StandardError)

      class << self
        # The values of all elements, in a new buffer on the host. Yields where a stretch begins and how many elements it has, and gives their buffer,
        # which the device may still be computing.
        #
        # @param unit [Integer] elements that are not taken apart
        # @param reach [Array<Integer>] elements before a stretch and behind it that it is computed from: they are yielded with it, as far as there are such,
        #   and what they come to is not looked at
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def run(count, unit = 1, reach = NONE)
          length, from, out, waiting = whole((count + 1) / 2, unit), 0, nil, nil
          while from < count
            size = [length, count - from].min
            first, last = [from - reach.first, 0].max, [from + size + reach.last, count].min
            begin
              values = yield first, last - first
            rescue DeviceMemoryError
              if waiting
                # it holds memory
                waiting = store(out, *waiting)
              else
                length = halved(length, unit) or raise
              end
              next
            rescue Located => error
              # what comes first is told first
              store(out, *waiting) if waiting
              raise moved(error, first + error.ikra.index)
            end
            out ||= Buffer.new(values.dtype, count)
            store(out, *waiting) if waiting
            waiting = [from, size, values, first]
            from += size
          end
          store(out, *waiting)
          out
        end

        # The number of the first element that the block finds, which is given a stretch's expression and gives its number there; nil: there is none.
        #
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def find(node)
          each(node) do |stretch, from|
            found = yield stretch
            return from + found if found
          end
          nil
        end

        # Whether what stretches are reduced to is enough to know what the whole is: of Floats that are added, the order of all counts.
        # The least and the greatest at once are looked for in what stretches come to.
        def reduces?(operation, dtype) = operation == :sum ? DType.integer?(dtype) : operation != :minmax

        # What all elements are reduced to (`Ikra.__reduce`). Yields a stretch's expression, and gives what its elements are.
        #
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def reduce(node, operation)
          parts = []
          each(node) { |stretch, from| parts << [from, yield(stretch)] }
          return parts.sum(&:last) unless %i[min max].include?(operation)

          # value, number, and whether there is NaN
          places = parts.filter_map { |from, (value, index, _)| [value, from + index] if value }
          best = places.reduce { |one, other| (operation == :min ? other.first < one.first : other.first > one.first) ? other : one }
          [*(best || [nil, nil]), parts.any? { |_, part| part.last }]
        end

        # What chunks along a dimension come to, in a new array on the host. Yields a part of the array, a whole number of chunks along that dimension, and
        # gives the buffer of what they come to.
        #
        # @param sizes [Array<Integer>] around, along, and within the dimension
        # @raise [DeviceMemoryError] where the least part does not fit
        def along(array, sizes)
          cube, (outer, length, inner), out = array.reshape(*sizes), sizes, nil
          chunks = (length + Run::CHUNK - 1) / Run::CHUNK
          parts(sizes) do |ranges|
            values = yield portion(cube, ranges)
            out ||= Buffer.new(values.dtype, outer * chunks * inner)
            top, from, left = ranges[0].begin, ranges[1].begin / Run::CHUNK, ranges[2].begin
            shape = [ranges[0].size, (ranges[1].size + Run::CHUNK - 1) / Run::CHUNK, ranges[2].size]
            out.store_part(values, (top * chunks + from) * inner + left, shape, [chunks * inner, inner, 1])
            values.free
          end
          MDArray.__of(out, out.dtype, [outer, chunks, inner])
        end

        # What rows along a dimension come to, one value for each or as many as there are in a row, as a new buffer on the host and its kind. Yields a part of the
        # array, of whole rows, and gives the buffer of what they come to.
        #
        # @param sizes (see #along)
        # @raise [DeviceMemoryError] where the least part does not fit
        def rows(array, sizes)
          cube, (outer, length, inner), out, each = array.reshape(*sizes), sizes
          parts(sizes, length) do |ranges|
            values = yield portion(cube, ranges)
            each ||= values.size / (ranges[0].size * ranges[2].size)
            out ||= Buffer.new(values.dtype, outer * each * inner)
            out.store_part(values, ranges[0].begin * each * inner + ranges[2].begin, [ranges[0].size, each, ranges[2].size], [each * inner, inner, 1])
            values.free
          end
          [out, out.dtype]
        end

        # The product of two matrices, in a new array on the host. Yields some rows of the first and some columns of the other, and gives the array that
        # these come to: the same elements as in the whole.
        #
        # @raise [DeviceMemoryError] where a row by a column does not fit
        def product(one, other, kind)
          (rows, inner), columns = one.shape, other.shape.last
          high, wide, left, out, waiting, first = rows, columns, 0, Buffer.new(kind, rows * columns), nil, nil
          while left < columns
            width, top = [wide, columns - left].min, 0
            strip = block(other, 0, inner, left, width)
            while top < rows
              height = [high, rows - top].min
              begin
                made = yield block(one, top, height, 0, inner), strip
              rescue DeviceMemoryError
                # what waits holds memory; else the longer side is halved, and once a strip is begun its height
                if waiting then waiting = keep(out, *waiting)
                elsif top.positive? || high > wide then high = high > 1 ? (high + 1) / 2 : raise
                else
                  wide = wide > 1 ? (wide + 1) / 2 : raise
                  break
                end
                next
              rescue Located => error
                row, column = error.ikra.index.divmod(width)
                first = [*first, moved(error, (top + row) * columns + left + column)].min_by { |raised| raised.ikra.index }
                made = nil
              end
              waiting = keep(out, *waiting) if waiting
              waiting = [made, top * columns + left, [columns, 1]] if made
              top += height
            end
            left += width if top >= rows
          end
          raise first if first

          keep(out, *waiting)
          MDArray.__of(out, kind, [rows, columns])
        end

        # Tells later what a stretch raised: it is told as that of the whole.
        def told(error) = error

        private

        # Parts of an array that did not fit, each as large as does; halved first around the dimension that they are combined along, of which they are `unit`s.
        def parts(sizes, unit = Run::CHUNK)
          size = ->(ranges) { ranges.map(&:size).reduce(:*) }
          whole = sizes.map { |count| 0...count }
          waiting, most = [whole], size[whole]
          until waiting.empty?
            ranges = waiting.shift
            begin
              next yield ranges if size[ranges] < most
            rescue DeviceMemoryError
              most = size[ranges]
            end
            halves = (halves(ranges, unit) if most > LEAST)
            raise DeviceMemoryError, "the least part of an array does not fit" unless halves

            waiting.unshift(*halves)
          end
        end

        # nil: it is the least.
        def halves(ranges, unit)
          axis = [0, 1, 2].find { |dimension| ranges[dimension].size > (dimension == 1 ? unit : 1) } or return
          range = ranges[axis]
          half = (range.size + 1) / 2
          half = (half + unit - 1) / unit * unit if axis == 1
          [range.begin...range.begin + half, range.begin + half...range.end].map { |part| ranges.dup.tap { |parts| parts[axis] = part } }
        end

        # A part of an array, from the host.
        def portion(array, ranges)
          layout = ranges.each_with_index.reduce(array.__layout) { |parts, (range, dimension)| parts.part(dimension, range.begin, range.size) }
          MDArray.__of(array.__storage.buffer.gather(layout.offset, layout.shape, layout.strides), array.dtype, layout.shape)
        end

        def block(matrix, top, height, left, width) = portion(matrix, [top...top + height, left...left + width])

        def keep(out, made, place, strides)
          out.store_part(made.__packed, place, made.shape, strides)
          made.free
          nil
        end

        # The stretches, one after the other, and where they begin.
        def each(node)
          count, unit = node.shape.reduce(1, :*), Stretch.unit(node)
          length, from = whole((count + 1) / 2, unit), 0
          while from < count
            size = [length, count - from].min
            begin
              yield Stretch.of(node, from, size), from
            rescue DeviceMemoryError
              length = halved(length, unit) or raise
              next
            rescue Located => error
              raise moved(error, from + error.ikra.index)
            end
            from += size
          end
        end

        # nil: it is the least.
        def halved(length, unit)
          half = whole([(length + 1) / 2, LEAST].max, unit)
          half if half < length
        end

        def whole(length, unit) = (length + unit - 1) / unit * unit

        # Of values that begin with element `first`, so many from one on.
        def store(out, from, size, values, first)
          own = size == values.size ? values : values.part(from - first, size)
          out.store_part(own, from, [size], [1])
          values.free
          nil
        rescue Located => error
          raise moved(error, first + error.ikra.index)
        end

        # An error of a stretch, told with the element's index.
        def moved(error, index)
          error.instance_variable_set(:@ikra, Position.new(index, error.ikra.tick).freeze)
          error
        end
      end
    end
    private_constant :Tiles

    # What a block is given that depends on where an element is, of some rows.
    # @api private
    class Rows
      # Rows before and behind them that elements are computed from.
      attr_reader :reach
      # What the section of all rows was given.
      attr_reader :within

      # @yieldparam from, size [Integer] the number of an element, and how many
      # @yieldreturn [Array] what their section goes over, and the methods that give the block what it is given
      def initialize(within: [], reach: Tiles::NONE, &handed)
        @within = within
        @reach = reach
        @handed = handed
      end

      def handed(from, size) = @handed.call(from, size)

      # Of a block that is given the element's number, or nothing.
      NUMBERED = new { |from, size| [from...from + size, []] }
    end
    private_constant :Rows
  end
end
