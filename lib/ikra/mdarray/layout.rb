# frozen_string_literal: true

module Ikra
  class MDArray
    # Where the elements of an array are in a flat list. A layout has the sizes of the dimensions, from the outermost,
    # the distance of neighbours in each, and the place of the first element. Views are other layouts of the same list.
    # A layout knows nothing of elements.
    # @api private
    class Layout
      # The most dimensions of an array.
      MAX_DIMENSIONS = 32

      attr_reader :shape, :strides, :offset, :size

      class << self
        # Row after row, from the first place on.
        def packed(shape) = new(shape, strides(shape))

        def strides(shape)
          return [1] if shape.size == 1

          strides = Array.new(shape.size, 1)
          (shape.size - 2).downto(0) { |dimension| strides[dimension] = strides[dimension + 1] * shape[dimension + 1] }
          strides
        end

        # The common shape of several shapes, by broadcasting: dimensions of size 1, and missing ones in front, are
        # repeated.
        #
        # @raise [ArgumentError] for shapes that do not fit; the message shows them
        def broadcast(*shapes)
          rank = shapes.map(&:size).max
          Array.new(rank) do |dimension|
            sizes = shapes.filter_map { |shape| shape[dimension - rank + shape.size] if dimension - rank + shape.size >= 0 }.uniq
            sizes -= [1] if sizes.size > 1
            raise ArgumentError, "shapes #{shapes.map(&:inspect).uniq.join(" and ")} do not fit" if sizes.size > 1

            sizes.first
          end
        end
      end

      # The same shape, row after row from the first place on.
      def packed = packed? ? self : Layout.packed(@shape)

      def initialize(shape, strides, offset = 0)
        @shape = shape.freeze
        @strides = strides.freeze
        @size = shape.reduce(1, :*)
        # Without elements there is no first place.
        @offset = @size.zero? ? 0 : offset
      end

      def rank = @shape.size

      # The numbers of the elements, row after row.
      def positions = @positions ||= 0...@size

      # Whether the elements are all of a list from the first on, row after row.
      def packed? = (@packed ||= @offset.zero? && in_order? ? 1 : 0) == 1

      # Whether the elements are consecutive in the list, row after row.
      def in_order? = (@in_order ||= beside_each_other? ? 1 : 0) == 1

      # The place of the element with these indices. nil: there is none.
      def place(indices)
        place = @offset
        dimension = 0
        while dimension < indices.size
          index, size = indices[dimension], @shape[dimension]
          index += size if index.negative?
          return if index.negative? || index >= size

          place += index * @strides[dimension]
          dimension += 1
        end
        place
      end

      # The indices of an element, from its number row after row.
      def indices(number) = Layout.strides(@shape).zip(@shape).map { |stride, size| size.zero? ? 0 : number / stride % size }

      # The least and the greatest place. nil where there are no elements.
      def span
        return if @size.zero?

        low = high = @offset
        @shape.zip(@strides) { |size, stride| stride.negative? ? low += (size - 1) * stride : high += (size - 1) * stride }
        [low, high]
      end

      # All places, row after row.
      def places
        return [] if @size.zero?

        @shape.zip(@strides).reduce([@offset]) { |places, (size, stride)| places.flat_map { |place| Array.new(size) { |index| place + (index * stride) } } }
      end

      # @return [Layout] with +count+ indices of the dimension: every +step+-th from +first+ on. With +count+ nil, the
      #   dimension is removed.
      def part(dimension, first, count, step = 1)
        strides, shape = @strides.dup, @shape.dup
        offset = @offset + (first * strides[dimension])
        if count
          shape[dimension] = count
          strides[dimension] *= step
        else
          shape.delete_at(dimension)
          strides.delete_at(dimension)
        end
        Layout.new(shape, strides, offset)
      end

      def with_dimension(at) = Layout.new(@shape.dup.insert(at, 1), @strides.dup.insert(at, 0), @offset)

      def transpose(order) = Layout.new(@shape.values_at(*order), @strides.values_at(*order), @offset)

      # The elements along the diagonal of two dimensions, which becomes the last dimension.
      def diagonal(one, other, by)
        first, second = [-by, 0].max, [by, 0].max
        count = [[@shape[one] - first, @shape[other] - second].min, 0].max
        others = [*0...rank] - [one, other]
        offset = @offset + (first * @strides[one]) + (second * @strides[other])
        Layout.new([*@shape.values_at(*others), count], [*@strides.values_at(*others), @strides[one] + @strides[other]], offset)
      end

      # @return [Layout] with a greater shape, in which elements are repeated
      def broadcast(shape)
        return self if shape == @shape

        missing = shape.size - rank
        strides = shape.each_index.map { |dimension| dimension < missing || @shape[dimension - missing] == 1 ? 0 : @strides[dimension - missing] }
        Layout.new(shape, strides, @offset)
      end

      # @return [Layout, nil] with as many elements in the same order; nil: no strides can give that
      def reshape(shape)
        return Layout.new(shape, Layout.strides(shape), @offset) if in_order?

        pairs = @shape.zip(@strides).reject { |size, _| size == 1 }
        strides = shape.map do |size|
          next 0 if size == 1

          apart = take(pairs, size) or return
          apart
        end
        pairs.empty? ? Layout.new(shape, strides, @offset) : nil
      end

      def ==(other) = other.is_a?(Layout) && @shape == other.shape && @strides == other.strides && @offset == other.offset

      private

      def beside_each_other?
        return true if @size.zero?

        apart = 1
        (rank - 1).downto(0) do |dimension|
          next if @shape[dimension] == 1
          return false if @strides[dimension] != apart

          apart *= @shape[dimension]
        end
        true
      end

      # The stride of a new dimension that is a part of the outermost old one, all of it, or several together.
      def take(pairs, size)
        have, stride = pairs.shift
        while have && have < size
          following, apart = pairs.shift
          return if following.nil? || stride != following * apart

          have *= following
          stride = apart
        end
        return unless have && (have % size).zero?

        pairs.unshift([have / size, stride]) if have > size
        stride * (have / size)
      end
    end
    private_constant :Layout
  end
end
