# frozen_string_literal: true

module Ikra
  # Products of vectors and matrices.
  class MDArray
    # The fewest reads of each element for which a product first stores its operand in order.
    MIN_READS = 4
    # The fewest multiplications for which a library is asked, and the fewest rows, columns and products of each element
    # for which that of the CPU is faster.
    MIN_MULTIPLICATIONS = 1 << 14
    MIN_SIDE = 8
    private_constant :MIN_READS, :MIN_MULTIPLICATIONS, :MIN_SIDE

    # The sum of the products of two vectors. For other arrays {#matmul}.
    #
    # @param other [MDArray, Array]
    # @return [Numeric, MDArray]
    # @raise [ArgumentError] for shapes that do not fit
    def dot(other, **options)
      other = beside(other)
      return matmul(other, **options) unless ndim == 1 && other.ndim == 1
      raise ArgumentError, "shapes #{shape.inspect} and #{other.shape.inspect} do not fit" if shape != other.shape

      (self * other).sum(**options)
    end

    # The product of two matrices, or of a matrix and a vector. In arrays of more dimensions, the last two are matrices.
    # The others are repeated where they are of size 1.
    #
    # Each element is summed from the first product to the last. Floats of 32 bits are summed in 64 bits, and rounded
    # once. A library multiplies larger matrices of Floats, on a GPU cuBLAS where it is installed. It sums in an order
    # of its own, and Floats of 32 bits in 32 bits. `blas: false` forbids it.
    #
    # @param other [MDArray, Array]
    # @return [MDArray]
    # @raise [ArgumentError] for shapes that do not fit
    def matmul(other, **options)
      other = beside(other)
      kind = Operators.dtype(:*, [dtype, other.dtype])
      return self[:new, true].matmul(other, **options).__send__(:without, -2) if ndim == 1
      return matmul(other[true, :new], **options).__send__(:without, -1) if other.ndim == 1

      raise ArgumentError, "shapes #{shape.inspect} and #{other.shape.inspect} do not fit" if shape.last != other.shape[-2]

      product(other, kind, options)
    end
    alias mm matmul

    private

    # The array without a dimension of size 1.
    def without(axis) = self[*Array.new(ndim) { |dimension| dimension == ndim + axis ? 0 : true }]

    # @param part [Boolean] whether this is a part of a product that does not fit the device's memory
    def product(other, kind, options, part: false)
      rows, inner, columns = shape[-2], shape[-1], other.shape[-1]
      around = Layout.broadcast(shape[0...-2], other.shape[0...-2]) if ndim > 2 || other.ndim > 2
      sizes = [*around, rows, columns]
      Ikra.__check(options) unless options.empty?
      return MDArray.zeros(*sizes, dtype: kind) if sizes.include?(0) || inner.zero?

      begin
        by_library(other, kind, around, sizes, options) || by_kernel(other, kind, around, sizes, options)
      rescue DeviceMemoryError
        raise if around || part

        Tiles.product(self, other, kind) { |some, others| some.__send__(:product, others, kind, options, part: true) }
      end
    end

    # By Ikra's own kernel: each element is summed from the first product to the last.
    def by_kernel(other, kind, around, sizes, options)
      rows, inner, columns = sizes[-2], shape[-1], sizes[-1]
      one = often_read(columns).__send__(:spread, around, rows, inner).__send__(:at)
      two = other.__send__(:often_read, rows).__send__(:spread, around, inner, columns).__send__(:at)
      zero = DType.float?(kind) ? 0.0 : 0
      # For the masks and least values see the prelude's `mdarray.rb`.
      block = proc do |i|
        wide = columns < 1 ? 1 : columns
        high = rows < 1 ? 1 : rows
        row = i / wide
        from = (row * inner) & 0x7fff_ffff_ffff_ffff
        # It has few enough bits that the additions in the loop need no mask, and that range analysis can bound
        # addresses.
        first = (row / high * inner * wide + i % wide) & 0x0fff_ffff_ffff_ffff
        sum = zero
        k = 0
        while k < inner
          sum += one.call((from + k) & 0x7fff_ffff_ffff_ffff) * two.call(first + k * wide)
          k += 1
        end
        sum
      end
      MDArray.__of(Run.own(:matmul, options, &block).values(sizes.reduce(1, :*), kind, sizes).first, kind, sizes)
    end

    # The array, for a kernel that reads each element so many times: computed, with elements in order where that pays
    # for the copy.
    def often_read(times)
      return self if times < MIN_READS

      force
      @layout.packed? ? self : MDArray.__of(__packed, dtype, shape)
    rescue DeviceMemoryError
      self
    end

    # By a library. nil: there is none, Ikra's own kernel is faster, or the library does not accept these matrices.
    def by_library(other, kind, around, sizes, options)
      return unless DType.float?(kind)

      rows, inner, columns = sizes[-2], shape[-1], sizes[-1]
      matrices = [rows, inner, columns, around.nil? ? 1 : around.reduce(1, :*)]
      multiplications = matrices.reduce(:*)
      return if multiplications < MIN_MULTIPLICATIONS

      library = Ikra.__multiplier(storage.buffer, multiplications, options)
      return if library.nil? || (library == :cpu && [rows, inner, columns].min < MIN_SIDE)

      sides = [[self, rows, inner], [other, inner, columns]].map { |array, *matrix| array.__send__(:as, kind).__send__(:as_matrices, around, *matrix) }
      buffer = Ikra.__product(library, *sides, matrices)
      buffer && MDArray.__of(buffer, kind, sizes)
    end

    # The buffer, the first element, whether columns lie side by side, the distance from one row or column to the next,
    # and the distance from one matrix to the next. The last is 0 where all use the same matrix.
    def as_matrices(around, rows, columns)
      alone = ndim == 2 || shape[0...-2].all?(1)
      buffer, layout = alone ? [storage.buffer, __layout] : [spread(around, rows, columns).__packed, Layout.packed([*around, rows, columns])]
      apart = alone ? 0 : rows * columns
      down, right = layout.strides.last(2)
      # The stride of a dimension of size 1 does not matter.
      down, right = [rows == 1 ? [columns, down].max : down, columns == 1 ? 1 : right]
      return [buffer, layout.offset, false, down, apart] if right == 1 && down >= columns
      return [buffer, layout.offset, true, right, apart] if down == 1 && right >= rows

      [__packed, 0, false, columns, apart]
    end

    def spread(around, *matrix) = around.nil? || shape == [*around, *matrix] ? self : broadcast_to(*around, *matrix)
  end
end
