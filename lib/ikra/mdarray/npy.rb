# frozen_string_literal: true

module Ikra
  class MDArray
    # Files of NumPy's, format +.npy+ (NumPy Enhancement Proposal 1, and numpy/lib/format.py for versions 2 and 3).
    # @api private
    module Npy
      MAGIC = "\x93NUMPY".b
      # NumPy's names of kinds, for writing.
      WRITTEN = { i64: "<i8", i32: "<i4", u8: "|u1", f64: "<f8", f32: "<f4", bool: "|b1" }.freeze
      # NumPy's names of kinds, for reading: Ikra's kind, and Array#pack's letters with the least and with the most
      # significant byte first.
      READ = { "i1" => [:i32, "c", "c"], "i2" => [:i32, "s<", "s>"], "i4" => [:i32, "l<", "l>"], "i8" => [:i64, "q<", "q>"],
               "u1" => [:u8, "C", "C"], "u2" => [:i32, "S<", "S>"], "u4" => [:i64, "L<", "L>"], "u8" => [:i64, "Q<", "Q>"],
               "f2" => [:f32, "S<", "S>"], "f4" => [:f32, "e", "g"], "f8" => [:f64, "E", "G"], "b1" => [:bool, "C", "C"] }.freeze
      # Headers are padded so that the elements begin at a multiple of this.
      ALIGNED = 64
      # The most bytes that are first read at once.
      PIECE = 16 << 20

      class << self
        # @return [Array<String>] the parts of a file
        def file(array)
          header = "{'descr': '#{WRITTEN.fetch(array.dtype)}', 'fortran_order': False, 'shape': (#{array.shape.join(", ")}#{"," if array.ndim == 1}), }"
          header << " " * (-(MAGIC.bytesize + 4 + header.bytesize + 1) % ALIGNED) << "\n"
          [MAGIC, "\x01\x00".b, [header.bytesize].pack("S<"), header, array.to_bytes]
        end

        def read(io)
          kind, fortran, shape = header(io)
          MDArray.__shape(shape) unless shape.empty?
          order, name = kind[0], kind[1..]
          dtype, little, big = READ[name] || raise(ArgumentError, "the file has elements of kind #{kind.inspect}, which arrays do not know")
          count = shape.reduce(1, :*)
          size = count * name[1..].to_i
          bytes = some(io, size)
          raise ArgumentError, "the file ends before its elements: #{bytes.bytesize} bytes of #{size}" if bytes.bytesize < size

          # A single number becomes an array of one element.
          shape = [1] if shape.empty?
          buffer = elements(bytes, name, dtype, order == ">" ? big : little, order == ">")
          return MDArray.__of(buffer, dtype, shape) unless fortran

          MDArray.__of(buffer, dtype, shape.reverse).transpose
        end

        private

        def header(io)
          raise ArgumentError, "this is no file of NumPy's: it does not begin with \\x93NUMPY" if io.read(6)&.b != MAGIC

          version = part(io, 2).unpack1("C")
          raise ArgumentError, "the file is of version #{version}: 1 to 3 are known" unless (1..3).cover?(version)

          size = version == 1 ? part(io, 2).unpack1("S<") : part(io, 4).unpack1("L<")
          text = part(io, size)
          kind = text[/['"]descr['"]:\s*['"]([<>|=]\w+)['"]/, 1] or raise ArgumentError, "the file has elements of a kind that arrays do not know: #{text.strip}"
          shape = text[/['"]shape['"]:\s*\(([^)]*)\)/, 1] or raise ArgumentError, "the file's header says no shape: #{text.strip}"
          [kind, text.match?(/['"]fortran_order['"]:\s*True/), sizes(shape)]
        end

        # Older files have long integers of Python.
        def sizes(text)
          text.split(",").map(&:strip).reject(&:empty?).map do |digits|
            digits.match?(/\A-?\d+L?\z/) or raise ArgumentError, "the file's header says no shape: (#{text})"
            digits.to_i
          end
        end

        # So many bytes, or as many as there are. A header may claim more than any file has, so memory is allocated only
        # for bytes that exist.
        def some(io, size)
          bytes = "".b
          while bytes.bytesize < size
            piece = io.read([size - bytes.bytesize, [PIECE, bytes.bytesize].max].min) or break
            bytes << piece
          end
          bytes
        end

        def part(io, size)
          part = some(io, size)
          raise ArgumentError, "the file ends within its header" if part.bytesize < size

          part
        end

        # The bytes themselves where kind and byte order are Ikra's.
        def elements(bytes, name, dtype, letter, swapped)
          return Buffer.from_bytes(dtype, bytes) if WRITTEN.fetch(dtype).end_with?(name) && (!swapped || name.end_with?("1"))

          list = bytes.unpack("#{letter}*")
          list = list.map { |half| single(half) } if name == "f2"
          Buffer.from_list(dtype, list)
        end

        # A Float of 16 bits (IEEE 754 binary16).
        def single(half)
          sign = half[15].zero? ? 1.0 : -1.0
          exponent, fraction = (half >> 10) & 31, half & 1023
          return sign * ::Math.ldexp(fraction, -24) if exponent.zero?
          return fraction.zero? ? sign * Float::INFINITY : Float::NAN if exponent == 31

          sign * ::Math.ldexp(fraction + 1024, exponent - 25)
        end
      end
    end
    private_constant :Npy
  end
end
