# frozen_string_literal: true

module Ikra
  # Elements and parts: views share the elements of the array that they were made from.
  class MDArray
    # An element, or a view of a part.
    #
    # @example
    #   a[2, 3]            # an element; nil outside, negative from the end.
    #   a[2]               # a row.
    #   a[0..9, true]      # ten rows, all columns.
    #   a[(0..9) % 2]      # every other of ten rows.
    #   a[true, :new, 0]   # a dimension of size 1.
    #   a[a > 0]           # the elements for which the other array is true, as a new array.
    #   a[[3, 1]]          # these rows, as a new array.
    # @param indices [Integer, Range, true, Array<Integer>, :new, MDArray] for each dimension; missing ones mean whole
    #   dimensions
    # @return [Object, MDArray, nil] nil: there is no such element or part
    # @raise [ArgumentError] for more indices than dimensions
    def [](*indices)
      return element(indices) if indices.size == ndim && indices.all?(Integer)
      return chosen_by(indices.first) if indices.size == 1 && indices.first.is_a?(MDArray)

      gathered, indices = apart(indices)
      part = part_of(__layout, indices) or return
      return gathered.reduce(view(part)) { |view, (axis, places)| view.__send__(:gather, axis, places) } unless gathered.empty?

      view(part)
    end

    # Writes an element, or all elements of a part. The value is an array, whose dimensions of size 1 are repeated, or
    # one value for all.
    #
    # @param indices (see #[])
    # @param value [Object, MDArray, Array]
    # @raise [IndexError] for indices that are outside
    # @raise [RangeError, TypeError, FloatDomainError] for a value that the elements cannot hold
    # @raise [FrozenError]
    def []=(*indices, value)
      storage = writable
      if indices.size == ndim && indices.all?(Integer)
        place = __layout.place(indices) or raise IndexError, "index #{indices.inspect} is outside of shape #{shape.inspect}"
        value = in_element(indices) { DType.store(dtype, value) }
        storage.writable[place] = value
      elsif indices.size == 1 && indices.first.is_a?(MDArray)
        mask = same_shape(indices.first)
        return write_objects(mask, value) if dtype == :object

        fill(replaced(mask, value))
      else
        gathered, = apart(indices)
        raise ArgumentError, "lists of indices cannot be written through: write element by element, or with ranges" unless gathered.empty?

        part = part_of(__layout, indices) or raise IndexError, "index #{indices.inspect} is outside of shape #{shape.inspect}"
        view(part).fill(value)
      end
    end

    # An element, or nil where an index is outside.
    #
    # @return [Object, MDArray, nil]
    def dig(*indices) = self[*indices]

    # @return [MDArray, nil] a view of a part ({#[]})
    def slice(*indices) = self[*indices]

    # @return [MDArray] a view of a row of a matrix
    # @raise [IndexError]
    def row(index) = along(0, index, "row")

    # @return [MDArray] a view of a column of a matrix
    # @raise [IndexError]
    def column(index) = along(1, index, "column")

    # A view with other dimensions, of as many elements in the same order. Where no view is possible, the elements are
    # copied.
    #
    # @param sizes [Array<Integer>] one of them may be -1, for the remaining size
    # @return [MDArray]
    # @raise [ArgumentError] for another number of elements
    def reshape(*sizes)
      sizes = sizes.flatten
      raise ArgumentError, "#{sizes.inspect}: one dimension can be what is left, not #{sizes.count(-1)}" if sizes.count(-1) > 1

      if sizes.include?(-1)
        known = sizes.reject { |given| given == -1 }.reduce(1, :*)
        raise ArgumentError, "shape #{shape.inspect} (#{size} elements) cannot become #{sizes.inspect}" if known.zero? || size % known != 0

        sizes = sizes.map { |given| given == -1 ? size / known : given }
      end
      sizes = MDArray.__shape(sizes)
      raise ArgumentError, "shape #{shape.inspect} (#{size} elements) cannot become #{sizes.inspect} (#{sizes.reduce(1, :*)})" if sizes.reduce(1, :*) != size

      layout = __layout.reshape(sizes)
      layout ? view(layout) : MDArray.__of(__packed, dtype, sizes)
    end

    # @return [MDArray] a view with one dimension ({#reshape})
    def flatten
      layout = __layout.reshape([size])
      layout ? view(layout) : reshape(size)
    end
    alias ravel flatten

    # A view with its dimensions in the opposite order, or in the given order.
    #
    # @return [MDArray]
    # @raise [ArgumentError] for numbers that are no order of the dimensions
    def transpose(*order)
      order = order.flatten.map { |axis| axis_of(axis) }
      order = (0...ndim).to_a.reverse if order.empty?
      raise ArgumentError, "#{order.inspect} is no order of #{ndim} dimensions" unless order.sort == (0...ndim).to_a

      view(__layout.transpose(order))
    end

    # The same with the last two dimensions exchanged.
    #
    # @return [MDArray]
    def t = ndim < 2 ? view(__layout) : transpose(*0...(ndim - 2), ndim - 1, ndim - 2)

    # A view of the elements along the diagonal of two dimensions, which becomes the last one.
    #
    # @param offset [Integer] the distance above the main diagonal
    # @return [MDArray]
    # @raise [ArgumentError] for an array of one dimension
    def diagonal(offset = 0, axes: [0, 1])
      raise ArgumentError, "shape #{shape.inspect} has no diagonal: two dimensions are needed" if ndim < 2
      raise ArgumentError, "axes: #{axes.inspect} are not two dimensions" unless axes.is_a?(Array) && axes.size == 2

      one, other = axes.map { |axis| axis_of(axis) }
      raise ArgumentError, "the diagonal of a dimension with itself" if one == other

      view(__layout.diagonal(one, other, Operation.integer(offset)))
    end

    # A view from the last element to the first, along one dimension or all.
    #
    # @return [MDArray]
    def reverse(axis: nil)
      axes = axis.nil? ? (0...ndim) : [axis_of(axis)]
      view(axes.reduce(__layout) { |layout, dimension| layout.shape[dimension].zero? ? layout : layout.part(dimension, layout.shape[dimension] - 1, layout.shape[dimension], -1) })
    end

    # A view without dimensions of size 1.
    #
    # @return [MDArray]
    def squeeze
      kept = (0...ndim).reject { |dimension| shape[dimension] == 1 }
      kept = [0] if kept.empty?
      view(Layout.new(shape.values_at(*kept), __layout.strides.values_at(*kept), __layout.offset))
    end

    # A view in which dimensions of size 1 are repeated.
    #
    # @return [MDArray] frozen: several places share an element
    # @raise [ArgumentError] for a shape that does not fit
    def broadcast_to(*sizes)
      sizes = MDArray.__shape(sizes.flatten)
      raise ArgumentError, "shapes #{shape.inspect} and #{sizes.inspect} do not fit" if Layout.broadcast(shape, sizes) != sizes

      MDArray.__view(storage, __layout.broadcast(sizes), true)
    end

    # Writes all elements. The value is an array, whose dimensions of size 1 are repeated, or one value for all. The
    # exception of a pending expression is raised as by {#map!}.
    #
    # @param value [Object, MDArray, Array]
    # @return [self]
    # @raise (see #[]=)
    def fill(value)
      writable
      # An error for an element of a list is raised at once.
      value = MDArray.new(value, dtype: dtype == :object ? :object : nil).__send__(:as, dtype).tap(&:__storage) if value.is_a?(Array)
      dtype == :object ? fill_objects(value) : fill_values(value)
      self
    end

    private

    def view(layout) = MDArray.__view(storage, layout, frozen?)

    # Adds the indices of the element to an error of a write.
    def in_element(indices)
      yield
    rescue RangeError, TypeError => error
      raise error.class, "element #{indices.inspect}: #{error.message}", error.backtrace
    end

    def element(indices)
      place = __layout.place(indices)
      @storage.buffer[place] if place
    end

    def along(axis, index, name)
      raise ArgumentError, "shape #{shape.inspect} has no #{name}s: two dimensions are needed" if ndim != 2

      index = Operation.integer(index)
      self[*Array.new(axis, true), index] or raise IndexError, "#{name} #{index} is outside of shape #{shape.inspect}"
    end

    # The lists among the indices, by dimension; and the indices, with whole dimensions in their place.
    def apart(indices)
      return [[], indices] unless indices.any?(Array)

      axis = -1
      gathered = []
      rest = indices.map do |index|
        axis += 1 unless index.is_a?(Integer)
        next index unless index.is_a?(Array)

        gathered << [axis, index]
        true
      end
      [gathered, rest]
    end

    # The layout of a part. nil: there is none.
    def part_of(layout, indices)
      # Ruby takes 0 == :new for a recursion where a signal handler comes in the middle of the same.
      used = indices.count { |index| !index.equal?(:new) }
      raise ArgumentError, "#{used} indices for #{ndim} dimension#{"s" if ndim > 1}" if used > ndim

      dimension = 0
      indices.each do |index|
        layout = narrowed(layout, dimension, index) or return
        dimension += 1 unless index.is_a?(Integer)
      end
      layout
    end

    def narrowed(layout, dimension, index)
      size = layout.shape[dimension]
      case index
      when true then layout
      when :new then layout.with_dimension(dimension)
      when Integer
        index += size if index.negative?
        layout.part(dimension, index, nil) if index >= 0 && index < size
      when Range
        first, count = bounds(index, size)
        layout.part(dimension, first, count) if first
      when Enumerator::ArithmeticSequence then stepped(layout, dimension, index, size)
      else raise TypeError, "#{index.inspect} is no index: Integers, Ranges, true, :new and lists of Integers are"
      end
    end

    # First place and number of places of a Range, as Array#[] takes it.
    def bounds(range, size)
      first = range.begin.nil? ? 0 : Operation.integer(range.begin)
      last = range.end.nil? ? size : Operation.integer(range.end)
      first += size if first.negative?
      return if first.negative? || first > size

      last += size if last.negative? && !range.end.nil?
      last += 1 unless range.exclude_end? || range.end.nil?
      [first, [[last, size].min - first, 0].max]
    end

    # With an excluded end and a negative step, Ruby 3.1 excludes the greater end, and 3.3 the last one.
    EXCLUDES_LAST = [0, 1, 2][(2...0) % -1] == [2, 1]
    private_constant :EXCLUDES_LAST

    def stepped(layout, dimension, sequence, size)
      step = Operation.integer(sequence.step)
      first, last, excluded = sequence.begin, sequence.end, sequence.exclude_end?
      if step.negative?
        # As Array does, it takes the places of the Range from the lesser end, in the opposite order.
        last, excluded = Operation.integer(last) + 1, false if excluded && last && EXCLUDES_LAST
        first, last = last, first
      end
      first, count = bounds(Range.new(first, last, excluded), size)
      return if first.nil?
      return layout.part(dimension, first, (count + step - 1) / step, step) if step.positive?

      layout.part(dimension, [first + count - 1, 0].max, (count - step - 1) / -step, step)
    end

    # A copy of these places along a dimension.
    def gather(axis, places)
      size = shape[axis]
      places = places.map do |place|
        index = Operation.integer(place)
        index += size if index.negative?
        raise IndexError, "index #{place} is outside of shape #{shape.inspect}" if index.negative? || index >= size

        index
      end
      sizes = shape.dup
      sizes[axis] = places.size
      source, layout = self, Layout.packed(sizes)
      return MDArray.__of(Array.new(layout.size) { |number| source[*layout.indices(number).tap { |indices| indices[axis] = places[indices[axis]] }] }, dtype, sizes) if dtype == :object

      at, inner, taken = self.at, shape.drop(axis + 1).reduce(1, :*), places.size
      list = Buffer.from_list(:i64, places)
      block = proc do |i|
        rest = i / inner
        at.call((rest / taken * size + list[rest % taken]) * inner + i % inner)
      end
      MDArray.__of(Run.own(:gather, &block).values(layout.size, dtype, sizes).first, dtype, sizes)
    end

    # The elements for which another array is true.
    def chosen_by(mask)
      same_shape(mask)
      compacted(mask.__packed)
    end

    def same_shape(mask)
      raise TypeError, "an array of kind #{mask.dtype} is no index: one of kind bool is" unless mask.dtype == :bool
      raise ArgumentError, "shapes #{shape.inspect} and #{mask.shape.inspect} do not fit" if mask.shape != shape

      mask
    end

    def fill_objects(value)
      values = objects_for(value)
      list = writable.writable
      __layout.places.each_with_index { |place, number| list[place] = values[number] }
    end

    # The elements, with others where a mask is true. The other elements are converted to this array's kind first:
    # Integers of 64 bits beside Floats would be rounded.
    def replaced(mask, value)
      value = MDArray.new(value) if value.is_a?(Array)
      value = MDArray.full(*[1] * ndim, DType.store(dtype, value), dtype: dtype) unless value.is_a?(MDArray)
      # Where the mask is false, the value need not fit.
      value = MDArray.where(mask, value, 0) if value.dtype != dtype && DType.integer?(dtype) && DType.number?(value.dtype)
      MDArray.where(mask, value.__send__(:as, dtype), self)
    end

    # Writes objects where a mask is true.
    def write_objects(mask, value)
      values, flags = objects_for(value.is_a?(Array) ? MDArray.new(value, dtype: :object) : value), mask.__send__(:flat_list)
      list = writable.writable
      __layout.places.each_with_index { |place, number| list[place] = values[number] if flags[number] }
    end

    # A value for each element.
    def objects_for(value)
      return Array.new(size, value) unless value.is_a?(MDArray)
      raise ArgumentError, "shapes #{shape.inspect} and #{value.shape.inspect} do not fit" if Layout.broadcast(shape, value.shape) != shape

      value.broadcast_to(*shape).__send__(:flat_list)
    end

    # Writes values. They are computed first, so that their expression may read the former elements.
    def fill_values(value)
      value = MDArray.full(*Array.new(ndim, 1), DType.store(dtype, value), dtype: dtype) unless value.is_a?(MDArray)
      raise ArgumentError, "shapes #{shape.inspect} and #{value.shape.inspect} do not fit" if Layout.broadcast(shape, value.shape) != shape

      value = value.__send__(:as, dtype)
      return if empty?

      return put(value.__send__(:computed)) if whole? && value.shape == shape

      value = value.broadcast_to(*shape)
      buffer = value.__packed
      # The other array keeps its own buffer.
      put(buffer.equal?(value.__storage.buffer) ? buffer.copy : buffer)
    end

    # Whether these are all elements, in their order.
    def whole?
      layout = __layout
      layout.packed? && layout.size == buffer_size
    end

    # The elements in a buffer of their own. An exception of their computation may be raised later, when it is read.
    def computed
      return __packed.copy unless pending?

      Run.own(:fill) { |x| x }.values(size, dtype, shape, [[:computed, at]], later: true, pieces: self).first
    end

    # Replaces all elements, through the layout, by those of a buffer that is not shared.
    def put(buffer)
      storage = writable
      return storage.supersede(buffer) if whole?

      # Raises where the computation failed, before it replaces anything.
      buffer.settle
      target = storage.writable
      # For a small part, nothing else is copied.
      scatter(buffer, target) unless size * 2 <= buffer_size && put_part(buffer, target)
      # Freed now, not by the GC.
      buffer.free
    end

    # Writes elements to their places in the array, in a kernel.
    def scatter(source, target)
      places = Text.places(__layout)
      Run.own(:write) { |i| ::Ikra.__put(target, places.call(i), ::Ikra.__at(source, i)) }.each(size)
    rescue DeviceMemoryError
      # The elements may have left the device for the kernel's memory.
      raise unless put_part(source, target)
    end

    # Writes elements where they are. false: a kernel must do it.
    def put_part(source, target) = target.store_part(source, __layout.offset, __layout.shape, __layout.strides)
  end
end
