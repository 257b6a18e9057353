# frozen_string_literal: true

module Ikra
  # An array of any number of dimensions whose elements are of one kind, on the device until Ruby looks at them.
  #
  # Kinds of elements: Integers +:i64+ (the default for Integers), +:i32+, +:u8+; Floats +:f64+, +:f32+; +:bool+; and
  # +:object+, any other objects. Blocks of iterators run in parallel, as those of {Parallel} do, and take the same options.
  # Operators are written down and computed when somebody looks, in one kernel.
  #
  # @example
  #   heights = Ikra::MDArray.new(1000, 1000) { |i, j| Math.sin(i * 0.1) * j }
  #   (heights * 2 + 1).sum          # 1 kernel
  #   heights[0..9, true].to_a       # 10 rows
  class MDArray
    include Enumerable

    # Elements that {#inspect} shows of each dimension.
    SHOWN = 6
    # Blocks are given as many indices.
    MOST_INDICES = 6
    # An array has as many elements.
    MOST = (1 << 32) - 2

    class << self
      # `break` in the block gives its value, as in that of Array.new.
      def new(*sizes, **options, &block)
        array = allocate
        left = array.__send__(:initialize, *sizes, **options, &block)
        block && left.is_a?(Left) ? left.value : array
      end

      # @api private
      # An array of elements that are there; +shape+ may be a layout of it.
      def __of(buffer, dtype, shape)
        layout = shape.is_a?(Layout) ? shape.packed : Layout.packed(shape)
        # what lies beyond a buffer is somebody else's memory
        raise ArgumentError, "#{buffer.size} elements for shape #{layout.shape.inspect}" if buffer.is_a?(Buffer) && buffer.size != layout.size

        allocate.__set(Storage.new(buffer, dtype), layout)
      end

      # @api private
      def __view(storage, layout, frozen) = allocate.__set(storage, layout, view: true).tap { |view| view.freeze if frozen }

      # @api private
      # An array that will be computed.
      def __pending(operation) = allocate.__wait(operation)

      # @api private
      # The sizes of dimensions, checked.
      #
      # @param most [Integer, nil] of elements that are made
      def __shape(sizes, most: nil)
        raise ArgumentError, "no dimensions" if sizes.empty?
        raise ArgumentError, "#{sizes.size} dimensions: at most #{Layout::MOST} are possible" if sizes.size > Layout::MOST

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
      # Says that a block has another number of parameters than it is given values.
      def __parameters(block, count, why)
        parameters = block.parameters
        return if parameters.size == count && block.arity == count

        parameters = parameters.map(&:first)
        given = parameters.count { |kind| %i[req opt].include?(kind) }
        return if given == count || given.zero? || parameters.include?(:rest)

        raise ArgumentError, "the block has #{given} parameter#{"s" if given > 1}, and #{why}: give it #{count}, or none"
      end
    end

    # Elements computed by a block on the device, zeros, or those of arrays within arrays.
    #
    # @overload initialize(*sizes, dtype: nil, **options)
    #   @param sizes [Array<Integer>] from the outermost dimension
    #   @param dtype [Symbol, nil] the kind of elements; nil: what the block gives; f64 without one
    #   @yieldparam indices [Integer] one parameter for each dimension
    # @overload initialize(nested, dtype: nil)
    #   @param nested [Array] rectangular; all Integers, all Floats, all true or false, or objects
    # @raise [ArgumentError] for negative sizes, for arrays that are ragged or mixed (the message has the index path of the first offender)
    # @raise [RangeError] for a value that such elements cannot hold; the message has the index
    def initialize(*sizes, dtype: nil, **options, &block)
      dtype &&= DType.check(dtype)
      if sizes.size == 1 && (sizes.first.is_a?(Array) || sizes.first.is_a?(MDArray))
        raise ArgumentError, "either an array or a block" if block

        Ikra.__check(options) unless options.empty?
        made_of(sizes.first, dtype)
      else
        shape = MDArray.__shape(sizes, most: MOST)
        Ikra.__check(options) unless block || options.empty?
        block ? compute(shape, dtype, options, block) : zeros(shape, dtype || :f64)
      end
    end

    # @return [Symbol] the kind of elements
    def dtype
      # first what another thread that computes it may take away
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

    # @return [Symbol] where the elements are: +:host+, +:device+ or +:both+; +:pending+: nobody has looked yet
    def where
      return :pending if pending?

      dtype == :object ? :host : @storage.buffer.where || :host
    end

    # @return [Integer] bytes of the elements
    def bytesize = size * DType::SIZES.fetch(dtype, 8)

    # Computes what is pending, and waits until it is there. It stays where it was computed.
    #
    # @return [self]
    def sync
      (@storage || storage).sync
      self
    end

    # Gives the memory back now. Who looks at the elements of it or its views after that gets an ArgumentError.
    #
    # @return [nil]
    # @raise [FrozenError]
    def free
      (freed? ? storage : writable).free
      nil
    end

    # @return [Boolean]
    def freed? = !pending? && (@storage || unmade).freed?

    # @return [Boolean] whether it shares elements with the array that it was made from
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
    # What an expression looks at.
    def __operand
      pending = @pending
      return pending.retain if pending && @storage.nil?

      Expression::Leaf.new(@storage, @layout)
    end

    # @api private
    # Elements as a flat list that lies row after row from its beginning: the buffer, or a copy of what a view shows.
    def __packed
      force
      return @storage.buffer if @layout.packed? && size == buffer_size
      return objects if dtype == :object

      begin
        Run.expression(Expression::Operation.new(:to, [__operand], dtype, shape))
      rescue DeviceMemoryError
        # the host copies what does not fit
        @storage.buffer.gather(@layout.offset, @layout.shape, @layout.strides)
      ensure
        @storage.release(@storage.buffer)
      end
    end

    # @api private
    # Notes by the buffer which shape its elements have.
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

    # Another array with the same elements; neither sees what is written to the other.
    def initialize_copy(other)
      super
      other.__storage
      storage, layout = other.__storage, other.__layout
      whole = layout.packed? && layout.size == other.__send__(:buffer_size)
      # a view's copy is none
      @pending = @view = nil
      __set(whole ? storage.share : Storage.new(other.__packed, dtype), Layout.packed(layout.shape))
    end

    # Nobody can write to it or its views any more.
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
      # several threads may look
      return if @storage || pending.nil?

      storage = pending.storage || pending.compute(Run.expression(pending))
      @layout ||= Layout.packed(shape)
      @storage = storage
      @pending = nil
    end

    def buffer_size = @storage.buffer.size

    # The storage, to be written.
    def writable
      storage = self.storage
      raise FrozenError.new("can't modify frozen #{self.class}: #{inspect}", receiver: self) if frozen? || storage.read_only

      storage
    end

    # What hands a block the element at each position.
    def handed
      force if @storage.nil? && @pending&.seen
      @storage && @layout.packed? ? [:stored, @storage.buffer] : [:computed, at]
    end

    # A lambda that computes the element at a position. Who is the first to look at what is pending keeps nothing of it.
    def at
      pending = @pending
      if pending && @storage.nil?
        if !pending.seen
          pending.seen = true
          return Text.block(pending, shape, :lambda)
        end
        force
      end
      return Text.element(@storage.buffer, dtype) if @layout.packed?

      leaf = Expression::Leaf.new(@storage, @layout)
      leaf.drop
      Text.block(leaf, shape, :lambda)
    end

    # `allocate` made it, and nobody said what it is.
    def unmade = raise(ArgumentError, "uninitialized #{self.class}")

    def zeros(shape, dtype)
      buffer = dtype == :object ? Array.new(shape.reduce(1, :*)) : Buffer.new(dtype, shape.reduce(1, :*))
      __set(Storage.new(buffer, dtype), Layout.packed(shape))
    end

    def compute(shape, dtype, options, block)
      rank = shape.size
      raise ArgumentError, "#{rank} dimensions: blocks are given at most #{MOST_INDICES} indices" if rank > MOST_INDICES

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

    # What `break` in a block of {.new} gives.
    Left = Struct.new(:value)
    private_constant :Left
  end

  # Kernels ask an array itself what its methods are ({MDArray#__kernel}).
  __live(MDArray)
  # C code of others asks it where its elements are ({MDArray#__memory_view}).
  __memory_views(MDArray)
end
