# frozen_string_literal: true

require "stringio"

module Ikra
  # Records of files and texts, as the base of a chain. A file is read when the chain is made.
  #
  # The text of all records lies in few long Strings. Kernels see a record as a part of one of them, so that there is no
  # Ruby object for a line.
  # @api private
  class Source
    # The most bytes of a String in a kernel.
    MAX_BYTES = (1 << 28) - 1
    # The number of bytes that are read at once.
    PIECE = 1 << 26
    # Encodings whose lines end with the byte of a line feed, and which kernels know.
    ENCODINGS = [Encoding::UTF_8, Encoding::US_ASCII, Encoding::BINARY].freeze
    private_constant :MAX_BYTES, :PIECE, :ENCODINGS

    # @param source [String, #to_path, #each_line, Array, nil] paths, inputs, or several of them
    # @param text [String, nil] the text itself
    def initialize(source, text)
      raise ArgumentError, "either a source or text: is needed" if source.nil? == text.nil?
      raise TypeError, "text: #{text.inspect} is no String" unless text.nil? || text.is_a?(String)

      @inputs = text ? [StringIO.new(text)] : Array(source.is_a?(Array) ? source : [source])
    end

    # A chain over the lines.
    #
    # @param separator [String, nil] as for each_line
    # @param chomp [Boolean] as for each_line
    def lines(separator, chomp, options)
      parts = []
      each_input do |input|
        if separator == "\n"
          pieces(input) { |text| add(parts, text, *Ikra.__lines(text, chomp)) }
        else
          whole(parts, input.each_line(separator, chomp: chomp))
        end
      end
      chain(parts, options)
    end

    # A chain over arrays of +count+ bytes, or over the bytes themselves. The last array of an input may be shorter.
    def bytes(count, options)
      data = []
      each_input do |input|
        # So many whole slices at once.
        until (piece = input.read([PIECE / (count || 1), 1].max * (count || 1))).nil?
          data << piece unless piece.empty?
        end
      end
      records(data, count, options)
    end

    private

    def each_input
      @inputs.each do |input|
        path = input.is_a?(String) || !input.respond_to?(:external_encoding)
        # File.open would take an Integer for a descriptor, and close it.
        raise TypeError, "#{input.class} is neither a path nor an input" if input.is_a?(Integer)

        path ? File.open(input) { |file| yield(check(file)) } : yield(check(input))
      end
    end

    def check(input)
      encoding = input.external_encoding || Encoding.default_external
      return input if ENCODINGS.include?(encoding)

      raise ArgumentError, "#{name(input)} is in #{encoding}: kernels know UTF-8, US-ASCII and binary"
    end

    def name(input) = input.respond_to?(:path) && input.path ? input.path.inspect : "the source"

    # Texts of whole lines.
    def pieces(input)
      encoding = input.external_encoding || Encoding.default_external
      rest = String.new(encoding: Encoding::BINARY)
      until (piece = input.read(PIECE)).nil?
        rest << piece
        last = rest.rindex("\n") or next
        yield(rest.slice!(0..last).force_encoding(encoding))
      end
      yield(rest.force_encoding(encoding)) unless rest.empty?
    end

    # Lines that Ruby found.
    def whole(parts, lines)
      lines.each_slice(1 << 16) do |some|
        sizes = some.map(&:bytesize)
        at = 0
        starts = sizes.map { |size| (at += size) - size }
        add(parts, some.join, Buffer.from_list(:i64, starts), Buffer.from_list(:i64, sizes))
      end
    end

    def add(parts, text, starts, sizes)
      return parts << [text.freeze, starts, sizes] if text.bytesize <= MAX_BYTES

      raise ArgumentError, "a record after record #{parts.sum { |part| part[1].size }} has #{text.bytesize} bytes: at most #{MAX_BYTES} are possible"
    end

    def chain(parts, options)
      return Lazy.new([], options) if parts.empty?

      if parts.one?
        text, starts, sizes = parts.first
        return Lazy.new(0...starts.size, options).map { |i| ::Ikra.__text(text, ::Ikra.__at(starts, i), ::Ikra.__at(sizes, i)) }
      end
      texts = parts.map(&:first)
      starts, sizes = [1, 2].map { |at| parts.flat_map { |part| part[at].to_list } }.map { |list| Buffer.from_list(:i64, list) }
      numbers = Buffer.from_list(:i64, parts.each_with_index.flat_map { |part, number| Array.new(part[1].size, number) })
      Lazy.new(0...starts.size, options).map do |i|
        ::Ikra.__text(texts[::Ikra.__at(numbers, i)], ::Ikra.__at(starts, i), ::Ikra.__at(sizes, i))
      end
    end

    # Slices of bytes. Only the last slice of an input may be shorter than the others.
    def records(data, count, options)
      bytes = Buffer.from_bytes(:u8, data.join)
      return Lazy.new(0...bytes.size, options).map { |i| ::Ikra.__at(bytes, i) } unless count

      starts = starts_of(data, count)
      return Lazy.new(0...(bytes.size / count), options).map { |i| Array.new(count) { |k| ::Ikra.__at(bytes, (i * count) + k) } } unless starts

      starts = Buffer.from_list(:i64, starts)
      Lazy.new(0...(starts.size - 1), options).map do |i|
        from = ::Ikra.__at(starts, i)
        Array.new(::Ikra.__at(starts, i + 1) - from) { |k| ::Ikra.__at(bytes, from + k) }
      end
    end

    # Where slices begin, and the end. nil where all have the same size.
    def starts_of(data, count)
      return if data.all? { |piece| (piece.bytesize % count).zero? }

      at = 0
      starts = data.flat_map do |piece|
        from = at
        at += piece.bytesize
        (from...at).step(count).to_a
      end
      starts << at
    end
  end
  private_constant :Source

  class << self
    # A chain over the lines of files, as +File.foreach+ gives them. A line ends with its file.
    #
    # @example
    #   Ikra.lines("book.txt").flat_map(&:split).tally # => { "the" => 6021, … }
    #   Ikra.lines(text: "a\nb\n", chomp: true).to_a   # => ["a", "b"]
    # @param source [String, #to_path, IO, Array] a path, an input, or several of them
    # @param separator [String, nil] the end of a line; `""`: empty lines; nil: none
    # @param chomp [Boolean] whether the ends of lines are left out
    # @param text [String] the text itself, in place of a source
    # @return [Lazy]
    # @raise [ArgumentError] for encodings that kernels do not know
    # @raise [SystemCallError] for files that cannot be read
    def lines(source = nil, separator = $/, chomp: false, text: nil, **options)
      __check(options)
      Source.new(source, text).lines(separator, chomp, options)
    end

    # A chain over the bytes of files, or over Arrays of +count+ of them. A slice ends with its file.
    #
    # @example
    #   Ikra.bytes("a.rgb", 3).map_reduce(:+) { |(r, g, b), out| out.emit(r, 1) }
    # @param source (see #lines)
    # @param count [Integer, nil] the number of bytes in a slice; nil: the bytes themselves
    # @param text [String] the bytes themselves, in place of a source
    # @return [Lazy]
    # @raise [ArgumentError] for a slice of less than one byte
    # @raise [SystemCallError] for files that cannot be read
    def bytes(source = nil, count = nil, text: nil, **options)
      __check(options)
      count = Operation.integer(count) unless count.nil?
      raise ArgumentError, "invalid slice size" unless count.nil? || count.positive?

      Source.new(source, text).bytes(count, options)
    end

    # @api private
    # In kernels: a part of a String, which the host knows to exist.
    def __text(text, from, size) = text.byteslice(from, size)
  end
end
