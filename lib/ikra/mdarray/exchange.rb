# frozen_string_literal: true

module Ikra
  # Elements from and to other programs and libraries: packed Strings, files, NArray, MemoryView.
  #
  # Bytes are in the order of x86 and ARM, the least significant first.
  class MDArray
    # Kinds of elements by their letters in Array#pack and MemoryView.
    FORMATS = { "c" => [:i32, 1], "C" => [:u8, 1], "s" => [:i32, 2], "S" => [:i32, 2], "l" => [:i32, 4], "i" => [:i32, 4], "L" => [:i64, 4], "I" => [:i64, 4],
                "q" => [:i64, 8], "j" => [:i64, 8], "Q" => [:i64, 8], "J" => [:i64, 8], "f" => [:f32, 4], "e" => [:f32, 4], "g" => [:f32, 4], "d" => [:f64, 8],
                "E" => [:f64, 8], "G" => [:f64, 8], "?" => [:bool, 1] }.freeze
    private_constant :FORMATS
    # NArray's kinds by its numbers for them: NArray::BYTE and so on.
    OLD_KINDS = { 1 => :u8, 2 => "s", 3 => :i32, 4 => :f32, 5 => :f64 }.freeze
    private_constant :OLD_KINDS
    # Numo's classes with their kinds, or with a letter of Array#pack for those of another width.
    NUMO = { "Int64" => :i64, "Int32" => :i32, "UInt8" => :u8, "DFloat" => :f64, "SFloat" => :f32 }.freeze
    NUMO_OTHERS = { "Int8" => [:i32, "c*"], "Int16" => [:i32, "s<*"], "UInt16" => [:i32, "S<*"], "UInt32" => [:i64, "L<*"], "UInt64" => [:i64, "Q<*"] }.freeze
    private_constant :NUMO, :NUMO_OTHERS

    class << self
      # @param string [String] packed elements, row after row
      # @param sizes [Array<Integer>] none: one dimension with all elements of the string
      # @return [MDArray]
      # @raise [ArgumentError] for another number of bytes
      def from_bytes(string, *sizes, dtype: :f64)
        dtype = DType.check(dtype)
        bytes = bytes_of(dtype)
        raise TypeError, "#{DType.shown(string)} is not a String" unless string.is_a?(String)

        raise ArgumentError, "#{string.bytesize} bytes are no whole number of #{dtype} (#{bytes} bytes)" unless (string.bytesize % bytes).zero?

        shape = sizes.empty? ? [string.bytesize / bytes] : __shape(sizes.flatten)
        wanted = shape.reduce(1, :*) * bytes
        raise ArgumentError, "#{string.bytesize} bytes for shape #{shape.inspect} of #{dtype}, which is #{wanted}" if string.bytesize != wanted

        __of(Buffer.from_bytes(dtype, string), dtype, shape)
      end

      # Reads a file of NumPy's, +.npy+.
      #
      # @param source [String, Pathname, IO] a path, or an open file
      # @return [MDArray]
      # @raise [ArgumentError] for another file, or elements of a kind that arrays do not have
      def read(source)
        __path?(source, :read) ? File.open(source, "rb") { |io| Npy.read(io) } : Npy.read(source)
      end

      # @api private
      # Whether an object names a file: a String, or a Pathname, whose methods to read and write are unlike those of an
      # IO.
      def __path?(file, method) = !file.respond_to?(method) || (defined?(::Pathname) && file.is_a?(::Pathname))

      # @param array [NArray, Numo::NArray] the first dimension of an NArray is the innermost, and becomes the last
      # @return [MDArray]
      # @raise [TypeError] for another object; for elements of another kind, such as complex numbers
      def from_narray(array)
        return from_numo(array) if defined?(::Numo::NArray) && array.is_a?(::Numo::NArray)
        raise TypeError, "#{array.class} is neither an NArray nor a Numo::NArray" unless defined?(::NArray) && array.is_a?(::NArray)

        kind = OLD_KINDS[array.typecode] or raise TypeError, "arrays have no kind for the elements of #{array.class}, type code #{array.typecode}"
        # An NArray without elements has no dimensions either.
        shape = array.empty? ? [0] : array.shape.reverse
        return new(array.to_s.unpack("s<*"), dtype: :i32).reshape(*shape) if kind == "s"

        __of(Buffer.from_bytes(kind, array.to_s), kind, shape)
      end

      # A copy of the elements that an object shows by Ruby's MemoryView, with any number of dimensions and any strides.
      #
      # @param object [Object] such as a Numo::NArray, a Fiddle::Pointer or a Fiddle::MemoryView
      # @param dtype [Symbol, nil] nil: the kind of the view; u8 where it has none
      # @return [MDArray]
      # @raise [ArgumentError] for an object without a view
      def from_memory_view(object, dtype: nil)
        return new(object, dtype: dtype) if object.is_a?(MDArray)

        require "fiddle"
        return from_view(object, dtype) if object.is_a?(Fiddle::MemoryView)

        view = Fiddle::MemoryView.new(object)
        begin
          from_view(view, dtype)
        ensure
          view.release
        end
      end

      private

      def bytes_of(dtype) = DType::SIZES[dtype] || raise(ArgumentError, "objects have no bytes")

      def from_numo(array)
        name = array.class.ancestors.filter_map { |known| known.name&.delete_prefix("Numo::") }.find { |known| NUMO.key?(known) || NUMO_OTHERS.key?(known) || known == "Bit" }
        # A Numo array of a single element has no dimensions.
        shape = array.shape.empty? ? [1] : array.shape
        return __of(Buffer.from_bytes(NUMO[name], array.to_binary), NUMO[name], shape) if NUMO.key?(name)
        return new([*array.to_a].flatten.map { |bit| bit == 1 }, dtype: :bool).reshape(*shape) if name == "Bit"

        dtype, format = NUMO_OTHERS[name] || raise(TypeError, "arrays have no kind for the elements of #{array.class}")
        new(array.to_binary.unpack(format), dtype: dtype).reshape(*shape)
      end

      def from_view(view, dtype)
        raise ArgumentError, "the MemoryView was released" if view.item_size.nil?

        format = (view.format || "C").delete("|=@<>!")
        kind, bytes = FORMATS[format] || raise(ArgumentError, "arrays have no kind for elements of format #{view.format.inspect}")
        raise ArgumentError, "elements of #{view.item_size} bytes, where the format #{view.format.inspect} says #{bytes}" if view.item_size != bytes

        shape = view.ndim == 1 && view.shape.nil? ? [view.byte_size / bytes] : view.shape
        memory = view.to_s
        packed = view.strides.nil? || view.strides == Layout.strides(shape).map { |stride| stride * bytes }
        kind = dtype ? DType.check(dtype) : kind
        width = bytes_of(kind)
        return __of(Buffer.from_bytes(kind, memory), kind, shape) if packed && memory.bytesize == shape.reduce(1, :*) * width && native?(view.format, kind)

        layout = Layout.packed(shape)
        list = Array.new(layout.size) { |number| view[*layout.indices(number)] }
        list.map! { |value| value.equal?(true) || (!value.equal?(false) && value != 0) } if kind == :bool
        new(list, dtype: kind).reshape(*shape)
      end

      # Whether a format has the bytes of a kind.
      def native?(format, dtype)
        { i64: %w[q j l q<], i32: %w[l i l<], u8: %w[C], f64: %w[d E], f32: %w[f e], bool: %w[C ?] }.fetch(dtype, []).include?(format || "C") && [1].pack("S") == "\x01\x00"
      end
    end

    # @api private
    # What a MemoryView of the array needs: the buffer, the first place, the shape, and the distances of neighbours.
    #
    # @param packed [Boolean] whether elements must be stored row after row
    # @param written [Boolean] whether the view will be written, and its elements become the array's
    # @return [Array, nil] nil: there is no view
    def __memory_view(packed, written)
      return if dtype == :object

      layout = __layout
      return if written && (frozen? || @storage.read_only)
      return [writable.lend, layout.offset, layout.shape, layout.strides] if written
      return [@storage.buffer, layout.offset, layout.shape, Layout.strides(layout.shape)] if layout.in_order?

      packed ? [__packed, 0, layout.shape, Layout.strides(layout.shape)] : [@storage.buffer, layout.offset, layout.shape, layout.strides]
    end

    # Writes the elements into an object that has a writable MemoryView of Ruby's, such as another MDArray.
    #
    # @return [self]
    # @raise [ArgumentError] for an object without a writable view, or with another shape or kind of elements
    # @raise [TypeError] for objects
    def write_to_memory_view(object)
      bytes = to_bytes
      wrong = Ikra.__write_view(object, bytes, dtype, shape)
      raise ArgumentError, "an object of #{object.class} shows no memory that may be written" if wrong == :none

      size, other, format = wrong
      raise ArgumentError, "the memory has elements of format #{format.inspect}, which are none of kind #{dtype}" if wrong && [size, other] == [DType::SIZES[dtype], shape]
      raise ArgumentError, "the memory is of shape #{other.inspect} with #{size} bytes for each element, not #{shape.inspect} with #{DType::SIZES[dtype]}" if wrong

      self
    end

    # @return [String] the elements packed, row after row
    # @raise [TypeError] for objects
    def to_bytes
      raise TypeError, "objects have no bytes" if dtype == :object

      low, = __layout.span
      low.nil? ? "".b : @layout.in_order? ? @storage.buffer.to_bytes(low, size) : __packed.to_bytes
    end

    # Writes a file of NumPy's, +.npy+.
    #
    # @param target [String, Pathname, IO] a path, or an open file
    # @return [self]
    # @raise [TypeError] for objects
    def write(target)
      raise TypeError, "objects have no bytes" if dtype == :object

      # First of all, so that the file does not change where the elements cannot be computed.
      file = Npy.file(self)
      MDArray.__path?(target, :write) ? File.open(target, "wb") { |io| io.write(*file) } : target.write(*file)
      self
    end

    # @return [NArray] the last dimension becomes its first, the innermost
    # @raise [NameError] where narray is not loaded
    # @raise [TypeError] for kinds that NArray does not have
    def to_narray
      raise NameError, "narray is not loaded: require \"narray\"" unless defined?(::NArray)

      array = dtype == :bool ? to(:u8) : self
      kind = { u8: "byte", i32: "int", f32: "sfloat", f64: "float" }[array.dtype] or raise TypeError, "NArray has no elements of kind #{dtype}"
      ::NArray.to_na(array.to_bytes, kind, *shape.reverse)
    end

    # @return [Numo::NArray]
    # @raise [NameError] where numo-narray is not loaded
    # @raise [TypeError] for objects
    def to_numo
      raise NameError, "numo-narray is not loaded: require \"numo/narray\"" unless defined?(::Numo::NArray)
      raise TypeError, "objects have no bytes" if dtype == :object
      return ::Numo::Bit.cast(to(:u8).to_a) if dtype == :bool

      ::Numo.const_get(NUMO.key(dtype)).from_binary(to_bytes, shape)
    end
  end
end
