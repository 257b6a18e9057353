# frozen_string_literal: true

module Ikra
  class Source
    # What a source is read from, as bytes. Here: which inputs can be read again, and whether a file has changed. How
    # bytes become records: {Slabs}.
    #
    # +start+ gives an object whose +read+ gives the next bytes, or nil at the end.
    # @api private
    class Input
      # The number of bytes that are read at once. So few are read within some milliseconds, and then a thread can end.
      PIECE = 1 << 22
      # The bytes at the place of an input that must be those of its file.
      COMPARED = 1 << 16
      private_constant :COMPARED

      # @return [Integer, Float] the number of bytes
      attr_reader :size
      attr_reader :encoding

      class << self
        def of(source)
          return source if source.is_a?(Input)

          opened(source) do |input, encoding|
            # An input that was given has a place, and may be a pipe.
            next of_open(input, encoding) if input.equal?(source)

            stat = input.stat
            # Files of the system's own may say that they are empty.
            stat.file? && stat.size.positive? ? Stored.new(source, 0, stat, encoding) : Text.new(read(input), encoding)
          end
        end

        # Yields an input and its encoding. A path is opened for that time.
        def opened(source)
          # File.open would take an Integer for a descriptor, and close it.
          raise TypeError, "#{source.class} is neither a path nor an input" if source.is_a?(Integer)
          return yield(source, Source.encoding(source)) unless source.is_a?(String) || !source.respond_to?(:external_encoding)

          File.open(source) { |file| yield(file, Source.encoding(file)) }
        end

        # Whether both are of one file.
        def same?(one, other) = [one.dev, one.ino] == [other.dev, other.ino]

        private

        def of_open(input, encoding)
          limit = input.is_a?(StringIO) ? Float::INFINITY : Source.limit
          # One byte more tells whether that is all.
          head = read(input, limit + 1)
          return Text.new(head, encoding) if head.bytesize <= limit

          stored(input, head, encoding) || Pipe.new(input, head, encoding)
        end

        # The file of an input, if that is known. The input is then at its end, as after +each_line+.
        def stored(input, head, encoding)
          return unless input.is_a?(File) && input.path && input.stat.file?

          stat, place = input.stat, input.pos - head.bytesize
          return if place.negative? || !same?(stat, File.stat(input.path))
          # The input may have been given bytes that are not in the file.
          begun = head.byteslice(0, COMPARED)
          return unless IO.binread(input.path, begun.bytesize, place) == begun

          input.seek(stat.size)
          Stored.new(input.path, place, stat, encoding)
        rescue SystemCallError, IOError
          nil
        end

        # The next bytes of an input, at most so many.
        def read(input, most = Float::INFINITY)
          text = String.new(encoding: Encoding::BINARY)
          while text.bytesize < most && (piece = input.read([PIECE, most - text.bytesize].min))
            text << piece
          end
          text
        end
      end

      def initialize(size, encoding)
        @size = size
        @encoding = encoding
      end

      # Called once what was read first is not needed again.
      def forget; end

      # Bytes in memory.
      class Text < Input
        # A user's String, which may change later.
        def self.given(text) = new(String.new(text), Source.encoding(StringIO.new(text)))

        # The bytes, frozen.
        attr_reader :text

        def initialize(text, encoding)
          @text = text.force_encoding(encoding).freeze
          super(text.bytesize, encoding)
        end

        def start(_keep) = StringIO.new(@text)
      end

      # A file, from some place to the end that it had when the chain was made. What is added later is not read.
      class Stored < Input
        # The bytes at both ends that are compared.
        ENDS = 1 << 12
        private_constant :ENDS

        def initialize(path, from, stat, encoding)
          @path = File.absolute_path(File.path(path))
          @from = from
          @stat = stat
          super(stat.size - from, encoding)
          @ends = File.open(@path, "rb") { |file| ends(file) }
        end

        def start(_keep) = Reading.new(@path, @from, @size, method(:check))

        # Raises for a file that no longer begins with what it held then. One that has grown is taken to do so if both
        # ends of that are still there.
        def check(file)
          stat = file.stat
          return if Input.same?(stat, @stat) && (stat.size > @stat.size ? ends(file) == @ends : stat.size == @stat.size && stat.mtime == @stat.mtime)

          raise IOError, "#{@path.inspect} has changed since its chain was made"
        end

        private

        def ends(file) = [@from, [@stat.size - ENDS, @from].max].map { |place| file.pread([ENDS, @size].min, place) }
      end

      # The bytes of a file that are still to be read.
      class Reading
        def initialize(path, from, count, check)
          @at = from
          @left = count
          @check = check
          @file = File.open(path, "rb")
          @check.call(@file)
        end

        # The file's own position is not used: a process shares it with those that it forks.
        def read(most, into)
          found = begin
            @file.pread([most, @left].min, @at, into) unless @left.zero?
          rescue EOFError
            nil
          end
          @at += found.to_s.bytesize
          @left -= found.to_s.bytesize
          # The file may be shorter by now, or be written while it is read.
          @check.call(@file) if @left.zero? || found.nil?
          found
        end

        def close = @file.close
      end
      private_constant :Reading

      # An input that can be read only once. What was read first is kept, until it is forgotten. One result at a time
      # reads it.
      class Pipe < Input
        def initialize(input, head, encoding)
          @input = input
          @head = head
          super(Float::INFINITY, encoding)
        end

        def start(keep)
          raise IOError, "the input is being read for another result" if @flow
          raise IOError, "the input was read for an earlier result, and is too large to be kept" unless @head

          head = @head
          @head = nil unless keep
          @flow = Flow.new(@input, head, keep) { @flow = nil }
        end

        def forget
          @head = nil
          @flow&.forget
        end
      end

      # The bytes of a pipe: those that were read before, and those that are to be read. With +keep+ they become some
      # that were read before, until they are forgotten.
      class Flow
        # @yield when it is closed
        def initialize(input, head, keep, &closed)
          @input = input
          @head = head
          @keep = keep
          @at = 0
          @closed = closed
        end

        def read(most, into)
          if @head && @at < @head.bytesize
            into.replace(@head.byteslice(@at, most))
            @at += into.bytesize
            return into
          end
          @head = nil unless @keep
          # Not all inputs take a String to read into.
          found = @input.read(most) or return
          if @keep
            @head << found
            @at += found.bytesize
          end
          into.replace(found)
        end

        # What is read from now on is not kept.
        def forget = @keep = false

        # The input belongs to the user.
        def close = @closed.call
      end
      private_constant :Flow
    end
  end
end
