# frozen_string_literal: true

require "stringio"

module Ikra
  # Records of files and texts, as the base of a chain.
  #
  # The text of the records lies in long Strings: slabs. Kernels see a record as a part of one of them, so that there is
  # no Ruby object for a line. What fits one slab is read when the chain is made. Of more, {Lazy::Streamed} asks for one
  # slab after the other, and a thread reads the next one meanwhile. How slabs are cut: {Slabs}.
  # @api private
  class Source
    # The most bytes of a String in a kernel.
    MAX_BYTES = (1 << 28) - 1
    # The bytes of a slab, about. Larger ones are no faster.
    SLAB = 1 << 26
    # The most bytes of a text in memory that need not be cut into slabs.
    HELD = 1 << 27
    # The part of +memory_limit+ that a slab may take. The rest is for where its records begin, and for their groups.
    SHARE = 8
    # Encodings whose lines end with the byte of a line feed, and which kernels know.
    ENCODINGS = [Encoding::UTF_8, Encoding::US_ASCII, Encoding::BINARY].freeze
    private_constant :ENCODINGS

    class << self
      # The bytes of a slab.
      def limit
        memory = Ikra.config.memory_limit
        [SLAB, *(memory && [memory / SHARE, 1].max)].min
      end

      # The encoding of an input, whose bytes are not converted.
      def encoding(input)
        encoding = input.external_encoding || Encoding.default_external
        made = input.internal_encoding if input.respond_to?(:internal_encoding)
        made ||= encoding
        return encoding if ENCODINGS.include?(encoding) && made == encoding

        name = input.respond_to?(:path) && input.path ? input.path.inspect : "the source"
        raise ArgumentError, "#{name} is in #{encoding}#{" and converted to #{made}" if made != encoding}: kernels know UTF-8, US-ASCII and binary"
      end

      # @param bytes [Integer] the size of a record
      # @param count [Integer] how many records are before it
      def too_long(bytes, count)
        raise ArgumentError, "a record after record #{count} has #{bytes} bytes: at most #{MAX_BYTES} are possible"
      end

      # The list of sources in what the user gave.
      #
      # @param source [String, #to_path, #each_line, Array, nil] paths, inputs, or several of them
      # @param text [String, nil] the text itself
      def list(source, text)
        raise ArgumentError, "either a source or text: is needed" if source.nil? == text.nil?
        raise TypeError, "text: #{text.inspect} is no String" unless text.nil? || text.is_a?(String)

        text ? [StringIO.new(text)] : Array(source.is_a?(Array) ? source : [source])
      end

      # A chain over lines that end as separators other than a line feed say. Ruby finds them, all at once.
      def lines_by(sources, separator, chomp, options)
        parts = []
        sources.each do |source|
          Input.opened(source) { |input, _encoding| input.each_line(separator, chomp: chomp).each_slice(1 << 16) { |some| parts << Slabs::Lines.listed(some, parts) } }
        end
        Slabs::Lines.chain(parts, options)
      end
    end

    # @param sources [Array] as {Source.list} gives them
    # @param records [Slabs::Lines, Slabs::Slices] what a record is
    def initialize(sources, records)
      @records = records
      @inputs = sources.map { |source| Input.of(source) }
    end

    # A chain over all records.
    def chain(options)
      held = @inputs.one? && @inputs.first.is_a?(Input::Text) && Ikra.config.memory_limit.nil?
      return whole(options) if @inputs.sum(&:size) <= [Source.limit, *(HELD if held)].max

      Lazy::Streamed.new(self, options)
    end

    # The same with all records at once. They are kept.
    def whole(options)
      @whole ||= slabs
      @records.chain(@whole, options)
    end

    # Whether all records have been read and are kept.
    def whole? = !@whole.nil?

    # Whether all can be read again.
    def again? = @inputs.none?(Input::Pipe)

    # Yields the slabs. While the block works on one, a thread reads the next. A slab is gone after its block.
    #
    # What is read from a pipe is gone with the first slab, so it is read ahead only from then on.
    def each_slab
      slabs = Slabs.new(@inputs, @records, true)
      ahead = nil
      slab = slabs.next
      # Whether pipes can still be read from the beginning.
      kept = !again?
      while slab
        ahead = kept ? nil : Thread.new { attempt(slabs) }
        yield slab
        slab.free
        slabs.forget if kept
        kept = false
        slab, error = ahead ? read_by(ahead) : [slabs.next]
        raise error if error
      end
    ensure
      begin
        ahead&.kill&.join
      ensure
        slabs&.close
      end
    end

    def inspect = "#<records of #{@inputs.size} #{@inputs.size == 1 ? "input" : "inputs"}>"

    private

    # All slabs. A text that is in memory is one, unless it is too long for kernels.
    def slabs
      input = @inputs.first if @inputs.one?
      return [@records.held(input.text)] if input.is_a?(Input::Text) && input.size.between?(1, MAX_BYTES)

      slabs = Slabs.new(@inputs, @records, false)
      all = []
      while (slab = slabs.next)
        all << slab.keep
      end
      all
    ensure
      slabs&.close
    end

    # What a thread has read. Others may kill it, and a process that is forked has none.
    def read_by(thread) = thread.value || raise(IOError, "the thread that read the next records was killed")

    # The next slab, or the exception that is raised where it is asked for.
    def attempt(slabs)
      [slabs.next, nil]
    rescue StandardError => e
      [nil, e]
    end
  end
  private_constant :Source

  # A section of some elements depends on the others: {Lazy::Streamed} then runs it over all.
  # @api private
  class NeedsAll < RuntimeError
  end
  private_constant :NeedsAll

  class << self
    # A chain over the lines of files, as +File.foreach+ gives them. A line ends with its file.
    #
    # Files of more than 64 MiB are not read at once: +docs/mapreduce.md+ says when.
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
      CoreMethods.check
      __check(options)
      sources = Source.list(source, text)
      return Source.lines_by(sources, separator, chomp, options) unless separator == "\n"

      Source.new(text ? [Source::Input::Text.given(text)] : sources, Source::Slabs::Lines.new(chomp)).chain(options)
    end

    # A chain over the bytes of files, or over Arrays of +count+ of them. A slice ends with its file.
    #
    # Files of more than 64 MiB are not read at once: +docs/mapreduce.md+ says when.
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

      sources = Source.list(source, text)
      Source.new(text ? [Source::Input::Text.given(text)] : sources, Source::Slabs::Slices.new(count)).chain(options)
    end

    # @api private
    # In kernels: a part of a String, which the host knows to exist.
    def __text(text, from, size) = text.byteslice(from, size)
  end
end
