# frozen_string_literal: true

module Ikra
  # Iterators whose blocks run in parallel, on the device. They take the options of {Config} as keywords, and +break+
  # ends them with its value. All of them go over the elements row after row. Other methods of Enumerable run on the
  # host.
  class MDArray
    # The least number of elements of a view that a kernel copies together before the host reads them. Fewer are read
    # one by one as fast.
    MIN_COPIED_ELEMENTS = 1 << 15
    private_constant :MIN_COPIED_ELEMENTS

    # The block's value for each element.
    #
    # @param dtype [Symbol, nil] the kind of elements; nil: what the block gives
    # @yieldparam element
    # @return [MDArray] of the same shape; without a block an Enumerator, which goes over the elements on the host
    # @raise [CompileError] for a block that Ikra cannot run
    # @raise [RangeError] for a value that such elements cannot hold; the message has the index
    def map(dtype: nil, **options, &block)
      return flat_list.map unless block

      made = Ikra.__fast_path(block, @storage, @layout, MDArray) if dtype.nil? && options.empty?
      return made if made

      MDArray.__parameters(block, 1, "it is given one element")
      over(:map, options, block) { |run, within| made(run, dtype, within, shape, pieces: (self unless self.dtype == :object)) }
    end
    alias collect map

    # The same in place. The elements keep their kind. As with {#map}, an exception of the block may be raised later,
    # once, when the array is read. From then on the array has its former elements.
    #
    # @return [self]
    # @raise [FrozenError]
    def map!(**options, &block)
      raise LocalJumpError, "no block given" unless block

      writable
      made = Ikra.__fast_path(block, @storage, @layout, nil) if options.empty?
      if made
        put(made)
        return self
      end

      MDArray.__parameters(block, 1, "it is given one element")
      over(:map!, options, block) do |run, within|
        if dtype == :object
          store_objects(run.objects(size, *within, base: base))
        elsif !empty?
          put(run.values(size, dtype, shape, within, base: base, later: true, pieces: self).first)
        end
        self
      end
    end
    alias collect! map!

    # The block's value for each element and its indices.
    #
    # @yieldparam element
    # @yieldparam indices [Integer] one parameter for each dimension
    # @return (see #map)
    def map_with_index(dtype: nil, **options, &block)
      return flat_list.map.with_index unless block

      indexed(:map_with_index, options, block) do |run, within|
        rows = Rows.new(within: within) { |from, size| [from...from + size, [indexed_part(from, size)]] }
        made(run, dtype, within, shape, base: 0...size, pieces: (rows unless self.dtype == :object))
      end
    end

    # Calls any block with each element, row after row, as Ruby's own +each+ does. Elements are those of the time when
    # +each+ began. The methods of Enumerable that use it, such as +each_with_index+, do the same. {#peach} is the
    # parallel method.
    #
    # @example
    #   for x in array do puts x end
    # @yieldparam element
    # @return [self] without a block an Enumerator
    def each(&block)
      return to_enum(:each) { size } unless block

      flat_list.each(&block)
      self
    end

    # Runs a block for each element, for its effects.
    #
    # @yieldparam element
    # @return [self] without a block an Enumerator, which goes over the elements on the host
    # @raise [CompileError] for a block that Ikra cannot run
    def peach(**options, &block)
      return to_enum(:peach) { size } unless block

      # The block is one of Enumerator's own methods.
      return each(&block) if block.source_location.nil? && !block.lambda?

      MDArray.__parameters(block, 1, "it is given one element")
      over(:peach, options, block) do |run, within|
        run.each(size, *within, base: base)
        self
      end
    end

    # The same with the indices.
    #
    # @yieldparam element
    # @yieldparam indices [Integer] one parameter for each dimension
    # @return [self]
    def peach_with_index(**options, &block)
      raise LocalJumpError, "no block given" unless block

      indexed(:peach_with_index, options, block) do |run, within|
        run.each(size, *within)
        self
      end
    end

    # The elements for which a block is true.
    #
    # @yieldparam element
    # @return [MDArray] of one dimension
    def select(**options, &block) = block ? choosing(true, options, block) : flat_list.select
    alias filter select

    # The elements for which a block is false or nil.
    #
    # @yieldparam element
    # @return [MDArray] of one dimension
    def reject(**options, &block) = block ? choosing(false, options, block) : flat_list.reject

    # The block's value for the elements of several arrays.
    #
    # @param others [Array<MDArray, Array, Numeric>] dimensions of size 1 are repeated
    # @yieldparam elements one parameter for each array
    # @return [MDArray]
    # @raise [ArgumentError] for shapes that do not fit
    def combine(*others, dtype: nil, **options, &block)
      raise ArgumentError, "no array to combine with" if others.empty?
      raise ArgumentError, "#{others.size} arrays: at most #{Operation::MAX_LISTS} are combined with the receiver" if others.size > Operation::MAX_LISTS
      raise LocalJumpError, "no block given" unless block

      MDArray.__parameters(block, others.size + 1, "there are #{others.size + 1} arrays")
      arrays = [self, *others.map { |other| beside(other) }]
      shape = Layout.broadcast(*arrays.map(&:shape))
      run = Run.new(:combine, options, block)
      run.ending do
        ats = arrays.map { |array| (array.shape == shape ? array : array.broadcast_to(*shape)).__send__(:at) }
        made(run, dtype, [[:"computed_#{arrays.size}", *ats]], shape, base: 0...shape.reduce(1, :*), pieces: arrays)
      end
    end

    # The elements of several arrays side by side, in a new last dimension.
    #
    # @param others [Array<MDArray, Array>] of the same shape
    # @return [MDArray] with a block, which then runs on the host, nil
    def zip(*others, &block)
      arrays = [self, *others.map { |other| beside(other) }]
      wrong = arrays.find { |array| array.shape != shape } and raise ArgumentError, "shapes #{shape.inspect} and #{wrong.shape.inspect} do not fit"
      return arrays.map { |array| array.__send__(:flat_list) }.transpose.each(&block) && nil if block

      MDArray.concat(*arrays.map { |array| array[*([true] * ndim).push(:new)] }, axis: ndim)
    end

    # The block's value for each element's neighbours; see {Parallel#pstencil}.
    #
    # @param offsets [Array<Integer, Array<Integer>>] of up to three dimensions
    # @param fill the value of elements whose neighbours do not all exist
    # @yieldparam neighbours called with an offset; or one parameter for each
    # @return [MDArray]
    # @raise [ArgumentError] for offsets of another number of dimensions
    def stencil(offsets, fill, dtype: nil, **options, &block)
      raise LocalJumpError, "no block given" unless block

      run = Run.new(:stencil, options, block)
      run.ending do
        stencil = Stencil.new(list = __packed, offsets, shape)
        rows = Rows.new(reach: [stencil.least.first.clamp(nil, 0).abs, stencil.greatest.first.clamp(0, nil)]) do |from, size|
          part = Stencil.new(list.part(from, size), offsets, [size / Stretch.row(shape), *shape.drop(1)])
          [0...size, [part.method_for(block, fill)]]
        end
        made(run, dtype, [stencil.method_for(block, fill)], shape, base: 0...size, pieces: (rows unless self.dtype == :object))
      end
    end

    private

    # The base of a section. Objects are elements of the section. Other elements are computed from positions.
    def base = dtype == :object ? flat_list : (@layout ? @layout.positions : 0...size)

    def over(name, options, block)
      run = Run.new(name, options, block)
      run.ending { yield(run, dtype == :object ? [] : [handed]) }
    end

    def indexed(name, options, block)
      raise ArgumentError, "#{ndim} dimensions: blocks are given at most #{MAX_INDICES} indices" if ndim > MAX_INDICES

      MDArray.__parameters(block, ndim + 1, "it is given an element and #{ndim} #{ndim == 1 ? "index" : "indices"}")
      run = Run.new(name, options, block)
      run.ending { yield(run, [[:"indexed_#{ndim}", at, *shape.drop(1)]]) }
    end

    # The methods that pass a block some elements with their indices.
    def indexed_part(from, size)
      node = __operand
      part = Stretch.of(node, from, size)
      [:"indexed_part_#{ndim}", Text.block(part, part.shape, :lambda), *shape.drop(1)]
    ensure
      node&.drop
    end

    # An array of a block's values. For elements that are objects, it may be an array of objects.
    def made(run, dtype, within, shape, base: self.base, pieces: nil)
      dtype &&= DType.check(dtype)
      own = @layout if @layout && shape.equal?(@layout.shape)
      count = own ? own.size : shape.reduce(1, :*)
      if dtype == :object || (dtype.nil? && self.dtype == :object)
        list = run.objects(count, *within, base: base)
        kind = dtype || (list.empty? ? :object : DType.of(list.first))
        kind = :object unless list.all? { |value| DType.of(value) == kind }
        return MDArray.__of(kind == :object ? list : Buffer.from_list(kind, list), kind, shape)
      end
      buffer, kind = run.values(count, dtype || (self.dtype if count.zero?), shape, within, base: base, later: true, pieces: pieces)
      MDArray.__of(buffer, kind, own || shape)
    end

    def store_objects(list)
      target = writable.writable
      __layout.places.each_with_index { |place, number| target[place] = list[number] }
    end

    def choosing(wanted, options, block)
      MDArray.__parameters(block, 1, "it is given one element")
      over(wanted ? :select : :reject, options, block) do |run, within|
        # Numbers can be left out by holes. true and false both occur as elements.
        next by_flags(wanted, run, within, options) if %i[object bool].include?(dtype)

        chosen =
          begin
            run.present(size, dtype, [wanted ? :selected : :rejected, at, Hole])
          rescue DeviceMemoryError
            next by_flags(wanted, run, within, options)
          end
        MDArray.__of(chosen, dtype, [chosen.size])
      end
    end

    # Computes a flag for each element first. That is possible stretch by stretch.
    def by_flags(wanted, run, within, options)
      flags, = run.values(size, :bool, shape, wanted ? within : [[:falsity], *within], base: base, pieces: (self unless dtype == :object))
      compacted(flags, options).tap { flags.free }
    end

    # The elements whose flags are true, in order.
    def compacted(flags, options = {})
      if dtype == :object
        list = Ikra.__chosen(flat_list, flags, true)
        return MDArray.__of(list, :object, [list.size])
      end
      elements = storage
      return dup.__send__(:compacted, flags, options) unless @layout.in_order?

      chosen = Ikra.__select(elements.buffer, @layout.offset, flags, options)
      MDArray.__of(chosen, dtype, [chosen.size])
    end

    # The other operand as an array: an array, a nested Array, or a number.
    def beside(other)
      case other
      when MDArray then other
      when Array then MDArray.new(other)
      when Numeric, true, false then MDArray.full(*[1] * ndim, other)
      else raise TypeError, "wrong argument type #{other.class} (expected MDArray, Array or number)"
      end
    end

    # All elements as Ruby's values, row after row.
    def flat_list
      storage = self.storage
      return objects if dtype == :object

      low, high = @layout.span
      return [] if low.nil?
      return storage.buffer.to_list(low, size) if @layout.in_order?
      return picked(storage.buffer, low, high) if size < MIN_COPIED_ELEMENTS && high - low < [4 * size, 4096].max

      __packed.to_list
    end

    def picked(buffer, low, high)
      part = buffer.to_list(low, high - low + 1)
      @layout.places.map { |place| part[place - low] }
    end

    def objects
      list = storage.buffer
      @layout.places.map { |place| list[place] }
    end
  end
end
