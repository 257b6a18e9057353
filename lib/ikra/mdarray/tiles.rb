# frozen_string_literal: true

module Ikra
  class MDArray
    # Computes stretch by stretch what does not fit the device's memory. Elements of arrays go to the device in parts,
    # and results are kept on the host. While the device computes one stretch, the next is uploaded. Then the result of
    # the first is downloaded.
    #
    # Here: the sizes of stretches and other parts, and what becomes of their results. Not here: parts of expressions
    # ({Stretch}), and kernels.
    # @api private
    module Tiles
      # The least stretch. Stretches are halved until they fit.
      MIN_STRETCH = 1 << 14
      # No elements before or after a stretch.
      NONE = [0, 0].freeze
      # Raised for work that cannot be done stretch by stretch, because it depends on other elements, draws random
      # numbers, or changes something.
      Refused = Class.new(StandardError)

      class << self
        # The values of all elements, in a new buffer on the host. Yields the start and the number of elements of a
        # stretch. The block gives their buffer, which the device may still be computing.
        #
        # @param unit [Integer] elements that are not separated
        # @param reach [Array<Integer>] the number of elements before and after a stretch that it is computed from. They
        #   are yielded with it, as far as they exist, and their results are ignored.
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
                # The waiting result holds memory.
                waiting = store(out, *waiting)
              else
                length = halved(length, unit) or raise
              end
              next
            rescue Located => error
              # The exception of the first stretch comes first.
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

        # The number of the first element that the block finds. The block gets a stretch's expression, and gives a
        # number within it. nil: there is none.
        #
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def find(node)
          each(node) do |stretch, from|
            found = yield stretch
            return from + found if found
          end
          nil
        end

        # Whether the reduction can be computed from those of stretches. A sum of Floats depends on the order of all
        # elements. For the least and the greatest at once there is another way.
        def reduces?(operation, dtype) = operation == :sum ? DType.integer?(dtype) : operation != :minmax

        # The reduction of all elements (`Ikra.__reduce`). Yields a stretch's expression; the block gives the reduction
        # of its elements.
        #
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def reduce(node, operation)
          parts = []
          each(node) { |stretch, from| parts << [from, yield(stretch)] }
          return parts.sum(&:last) unless %i[min max].include?(operation)

          # Value, number, and whether there is a NaN.
          places = parts.filter_map { |from, (value, index, _)| [value, from + index] if value }
          best = places.reduce { |one, other| (operation == :min ? other.first < one.first : other.first > one.first) ? other : one }
          [*(best || [nil, nil]), parts.any? { |_, part| part.last }]
        end

        # The results of chunks along a dimension, in a new array on the host. Yields a part of the array, with a whole
        # number of chunks along that dimension. The block gives the buffer of their results.
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

        # The results of rows along a dimension, in a new buffer on the host, and its kind. A row gives one value, or as
        # many as it has elements. Yields a part of the array, with whole rows. The block gives the buffer of their
        # results.
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

        # The product of two matrices, in a new array on the host. Yields some rows of the first and some columns of the
        # other. The block gives the array of their product, whose elements are those of the whole.
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
                # A waiting result holds memory, so it is stored first. Without one, the longer side is halved. Once a
                # strip has begun, only its height is.
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

        # As an error callback: the exception of a stretch is changed to that of the whole later.
        def deferred_error(error) = error

        private

        # Cuts an array that did not fit into parts, each as large as fits. It is halved first around the dimension
        # along which it is combined, and that dimension only into multiples of `unit`.
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
            halves = (halves(ranges, unit) if most > MIN_STRETCH)
            raise DeviceMemoryError, "the least part of an array does not fit" unless halves

            waiting.unshift(*halves)
          end
        end

        # nil: this is the least part.
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

        # nil: this is the least stretch.
        def halved(length, unit)
          half = whole([(length + 1) / 2, MIN_STRETCH].max, unit)
          half if half < length
        end

        def whole(length, unit) = (length + unit - 1) / unit * unit

        # Stores +size+ values from +from+ on. The buffer of values begins with element `first`.
        def store(out, from, size, values, first)
          own = size == values.size ? values : values.part(from - first, size)
          out.store_part(own, from, [size], [1])
          values.free
          nil
        rescue Located => error
          raise moved(error, first + error.ikra.index)
        end

        # An error of a stretch, with the element's index in the whole.
        def moved(error, index)
          error.instance_variable_set(:@ikra, Position.new(index, error.ikra.tick).freeze)
          error
        end
      end
    end
    private_constant :Tiles

    # The arguments of a block that depend on where an element is, for some rows.
    # @api private
    class Rows
      # The number of rows before and after them that elements are computed from.
      attr_reader :reach
      # The arguments of the section of all rows.
      attr_reader :within

      # @yieldparam from, size [Integer] the number of an element, and how many
      # @yieldreturn [Array] the base of their section, and the methods that pass the block its arguments
      def initialize(within: [], reach: Tiles::NONE, &handed)
        @within = within
        @reach = reach
        @handed = handed
      end

      def handed(from, size) = @handed.call(from, size)

      # For a block that gets the element's number, or nothing.
      NUMBERED = new { |from, size| [from...from + size, []] }
    end
    private_constant :Rows
  end
end
