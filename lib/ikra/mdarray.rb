# frozen_string_literal: true

module Ikra
  # An array of any number of dimensions whose elements are of one kind. It is on the device until Ruby looks at the
  # elements.
  #
  # Kinds of elements: Integers +:i64+ (the default for Integers), +:i32+, +:u8+; Floats +:f64+, +:f32+; +:bool+; and
  # +:object+, any other objects. Blocks of iterators run in parallel, as those of {Parallel} do, and take the same
  # options. Operators build an expression, which one kernel computes when its elements are needed.
  #
  # @example
  #   heights = Ikra::MDArray.new(1000, 1000) { |i, j| Math.sin(i * 0.1) * j }
  #   (heights * 2 + 1).sum          # 1 kernel
  #   heights[0..9, true].to_a       # 10 rows
  class MDArray
    include Enumerable

    # The number of elements that {#inspect} shows of each dimension.
    SHOWN = 6
    # The most indices that a block gets.
    MAX_INDICES = 6
    # The most elements of an array.
    MAX_ELEMENTS = (1 << 32) - 2

    class << self
      # `break` in the block gives its value, as it does for Array.new.
      def new(*sizes, **options, &block)
        array = allocate
        left = array.__send__(:initialize, *sizes, **options, &block)
        block && left.is_a?(Left) ? left.value : array
      end

      # @api private
      # An array of existing elements. +shape+ may be a layout of them.
      def __of(buffer, dtype, shape)
        layout = shape.is_a?(Layout) ? shape.packed : Layout.packed(shape)
        # Memory beyond a buffer belongs to others.
        raise ArgumentError, "#{buffer.size} elements for shape #{layout.shape.inspect}" if buffer.is_a?(Buffer) && buffer.size != layout.size

        allocate.__set(Storage.new(buffer, dtype), layout)
      end

      # @api private
      def __view(storage, layout, frozen) = allocate.__set(storage, layout, view: true).tap { |view| view.freeze if frozen }

      # @api private
      # An array that is computed later.
      def __pending(operation)
        operation.note_use if operation.count > 1
        allocate.__wait(operation)
      end

      # @api private
      # The checked sizes of dimensions.
      #
      # @param most [Integer, nil] the most elements of a new array
      def __shape(sizes, most: nil)
        CoreMethods.check
        raise ArgumentError, "no dimensions" if sizes.empty?
        raise ArgumentError, "#{sizes.size} dimensions: at most #{Layout::MAX_DIMENSIONS} are possible" if sizes.size > Layout::MAX_DIMENSIONS

        shape = sizes.each_with_index.map do |size, dimension|
          size = Operation.integer(size)
          raise ArgumentError, "dimension #{dimension} is negative: #{size}" if size.negative?

          size
        end
        raise ArgumentError, "#{shape.inspect}: more elements than memory can hold" if shape.reject(&:zero?).reduce(1, :*) >= 1 << 48
        raise ArgumentError, "shape #{shape.inspect} has #{shape.reduce(1, :*)} elements: an array has at most #{most}" if most && shape.reduce(1, :*) > most

        shape
      end

      # @api private
      # Raises where a block has another number of parameters than it gets values.
      def __parameters(block, count, why)
        parameters = block.parameters
        return if parameters.size == count && block.arity == count

        parameters = parameters.map(&:first)
        given = parameters.count { |kind| %i[req opt].include?(kind) }
        return if given == count || given.zero? || parameters.include?(:rest)

        raise ArgumentError, "the block has #{given} parameter#{"s" if given > 1}, and #{why}: give it #{count}, or none"
      end
    end

    # An array of elements that a block computes on the device, of zeros, or of the elements of arrays within arrays.
    #
    # @overload initialize(*sizes, dtype: nil, **options)
    #   @param sizes [Array<Integer>] from the outermost dimension
    #   @param dtype [Symbol, nil] the kind of elements; nil: what the block gives; f64 without one
    #   @yieldparam indices [Integer] one parameter for each dimension
    # @overload initialize(nested, dtype: nil)
    #   @param nested [Array] rectangular; all Integers, all Floats, all true or false, or objects
    # @raise [ArgumentError] for negative sizes, and for arrays that are ragged or mixed. The message has the index path
    #   of the first offender.
    # @raise [RangeError] for a value that such elements cannot hold; the message has the index
    def initialize(*sizes, dtype: nil, **options, &block)
      CoreMethods.check
      dtype &&= DType.check(dtype)
      if sizes.size == 1 && (sizes.first.is_a?(Array) || sizes.first.is_a?(MDArray))
        raise ArgumentError, "either an array or a block" if block

        Ikra.__check(options) unless options.empty?
        made_of(sizes.first, dtype)
      else
        shape = MDArray.__shape(sizes, most: MAX_ELEMENTS)
        Ikra.__check(options) unless block || options.empty?
        block ? compute(shape, dtype, options, block) : zeros(shape, dtype || :f64)
      end
    end

    # @return [Symbol] the kind of elements
    def dtype
      # First reads what another thread, which computes the array, may set to nil.
      pending = @pending
      (@storage || pending || unmade).dtype
    end

    # @return [Array<Integer>] the sizes of the dimensions, from the outermost
    def shape
      pending = @pending
      (@layout || pending || unmade).shape
    end

    # @return [Integer] the number of elements
    def size = @layout ? @layout.size : shape.reduce(1, :*)
    alias length size

    # @return [Integer] the number of dimensions
    def ndim = shape.size
    alias rank ndim

    # @return [Boolean] whether there are no elements
    def empty? = size.zero?

    # @return [Symbol] where the elements are: +:host+, +:device+ or +:both+; +:pending+: they are not computed yet
    def where
      return :pending if pending?

      dtype == :object ? :host : @storage.buffer.where || :host
    end

    # @return [Integer] bytes of the elements
    def bytesize = size * DType::SIZES.fetch(dtype, 8)

    # Computes a pending expression, and waits for the elements. They stay where they were computed.
    #
    # @return [self]
    def sync
      (@storage || storage).sync
      self
    end

    # Gives the memory back now. From then on, reading elements of it or of its views raises an ArgumentError.
    #
    # @return [nil]
    # @raise [FrozenError]
    def free
      (freed? ? storage : writable).free
      nil
    end

    # @return [Boolean]
    def freed? = !pending? && (@storage || unmade).freed?

    # @return [Boolean] whether it shares elements with the array from which it was made
    def view? = @view ? true : false

    # @api private
    def __set(storage, layout, view: false)
      @layout = layout
      @storage = storage
      @view = true if view
      self
    end

    # @api private
    def __wait(operation)
      @pending = operation
      self
    end

    # @api private
    # The node of an expression over this array.
    def __operand
      pending = @pending
      return pending.retain if pending && @storage.nil?

      Expression::Leaf.new(@storage, @layout)
    end

    # @api private
    # Elements as a flat list, row after row from its beginning: the buffer, or a copy of a view's elements.
    def __packed
      force
      return @storage.buffer if @layout.packed? && size == buffer_size
      return objects if dtype == :object

      begin
        Run.expression(Expression::Operation.new(:to, [__operand], dtype, shape))
      rescue DeviceMemoryError
        # The host copies what does not fit the device.
        @storage.buffer.gather(@layout.offset, @layout.shape, @layout.strides)
      ensure
        @storage.release(@storage.buffer)
      end
    end

    # @api private
    # Notes the shape of the array with its buffer, for messages about memory.
    def __shown_by(shapes)
      storage = @storage
      shapes[storage.buffer] = shape if storage && !view? && !storage.freed? && dtype != :object
    end

    # @api private
    def __storage = storage

    # @api private
    def __layout
      force
      @layout
    end

    # Makes this a copy of another array. Neither array sees writes to the other.
    def initialize_copy(other)
      super
      other.__storage
      storage, layout = other.__storage, other.__layout
      whole = layout.packed? && layout.size == other.__send__(:buffer_size)
      # The copy of a view is no view.
      @pending = @view = nil
      __set(whole ? storage.share : Storage.new(other.__packed, dtype), Layout.packed(layout.shape))
    end

    # Makes the array and its views read-only.
    #
    # @return [self]
    def freeze
      return self if frozen?

      storage.read_only = true unless view?
      super
    end

    private

    def pending? = @storage.nil?

    def storage
      force
      @storage
    end

    # Computes a pending expression.
    def force
      pending = @pending
      # Several threads may compute it.
      return if @storage || pending.nil?

      pending.asked
      storage = pending.storage || pending.compute(Run.expression(pending))
      @layout ||= Layout.packed(shape)
      @storage = storage
      @pending = nil
    end

    def buffer_size = @storage.buffer.size

    # The storage, for writing.
    def writable
      storage = self.storage
      raise FrozenError.new("can't modify frozen #{self.class}: #{inspect}", receiver: self) if frozen? || storage.read_only

      storage
    end

    # The methods that pass a block the element at each position.
    def handed
      force if @storage.nil? && @pending&.seen
      @storage && @layout.packed? ? [:stored, @storage.buffer] : [:computed, at]
    end

    # A lambda that computes the element at a position. The first reduction of a pending expression does not store its
    # elements.
    def at
      pending = @pending
      if pending && @storage.nil?
        if !pending.seen
          pending.seen = true
          Expression.settle(pending)
          return Text.block(pending, shape, :lambda)
        end
        force
      end
      return Text.element(@storage.buffer, dtype) if @layout.packed?

      leaf = Expression::Leaf.new(@storage, @layout)
      leaf.drop
      Text.block(leaf, shape, :lambda)
    end

    # Raises for an array from `allocate` that was never initialized.
    def unmade = raise(ArgumentError, "uninitialized #{self.class}")

    def zeros(shape, dtype)
      buffer = dtype == :object ? Array.new(shape.reduce(1, :*)) : Buffer.new(dtype, shape.reduce(1, :*))
      __set(Storage.new(buffer, dtype), Layout.packed(shape))
    end

    def compute(shape, dtype, options, block)
      rank = shape.size
      raise ArgumentError, "#{rank} dimensions: blocks are given at most #{MAX_INDICES} indices" if rank > MAX_INDICES

      MDArray.__parameters(block, rank, rank == 1 ? "there is 1 dimension" : "there are #{rank} dimensions")
      run = Run.new(:mdarray, options, block)
      count = shape.reduce(1, :*)
      within, rows = [], Rows::NUMBERED
      if rank > 1
        within = [[:"cells_#{rank}", *shape.drop(1)]]
        rows = Rows.new { |from, size| [from...from + size, [[:"cells_part_#{rank}", *shape.drop(1)]]] }
      end
      left = run.ending do
        buffer, dtype = dtype == :object ? [run.objects(count, *within), dtype] : run.values(count, dtype, shape, within, later: true, pieces: rows)
        __set(Storage.new(buffer, dtype), Layout.packed(shape))
        return
      end
      Left.new(left)
    end

    # The value of `break` in a block of {.new}.
    Left = Struct.new(:value)
    private_constant :Left
  end

  # Kernels ask an array itself for its methods ({MDArray#__kernel}).
  __live(MDArray)
  # C code of other libraries asks it where its elements are ({MDArray#__memory_view}).
  __memory_views(MDArray)
end
