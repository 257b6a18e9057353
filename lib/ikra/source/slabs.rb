# frozen_string_literal: true

module Ikra
  class Source
    # Reads inputs, from the first to the last, and cuts them into slabs of whole records. Records end with their input.
    #
    # A slab has some bytes more than {Source.limit}, or as many as a record that is longer.
    # @api private
    class Slabs
      # @param inputs [Array<Input>]
      # @param records [Lines, Slices] what a record is
      # @param keep [Boolean] whether pipes keep what is read
      def initialize(inputs, records, keep)
        @inputs = inputs.dup
        @started = []
        @records = records
        @keep = keep
        @limit = Source.limit
        # How many bytes are still to be read, with those of the slab.
        @left = inputs.sum(&:size)
        @piece = String.new(encoding: Encoding::BINARY)
        # How many records there were.
        @count = 0
        @place = 0
        begin_text("".b)
      end

      # The next slab, or nil.
      def next
        loop do
          return take(@whole) if @whole.positive? && (@text.bytesize >= @limit || @alone)

          piece = read or return (take(@text.bytesize) unless @text.empty?)
          add(piece)
        end
      end

      # What was read before is not needed again. Inputs that have not been begun keep what they have until then.
      def forget
        @keep = false
        @started.each(&:forget)
      end

      def close
        @open&.close
        @open = nil
      end

      private

      # @param text [String] what follows the last slab
      def begin_text(text)
        @text = String.new(capacity: [@limit + Input::PIECE, @left].min, encoding: Encoding::BINARY) << text
        # The end of its last record, or 0. Records end where inputs do, too.
        @whole = [@records.ended(text, @place) || 0, 0].max
        # Where inputs end.
        @ends = []
        # Whether its last record ends a slab.
        @alone = false
      end

      # The next bytes. nil: there are none, or not in this encoding.
      def read
        loop do
          return unless @open || open_next
          return @piece.force_encoding(Encoding::BINARY) if @open.read([Input::PIECE, @limit].min, @piece)

          close
          @whole = @text.bytesize
          @ends << @whole
          @alone = @records.alone?(@place)
          # What was read may be a slab.
          return "".b if @alone
        end
      end

      def open_next
        input = @inputs.first or return
        return if @text.bytesize.positive? && input.encoding != @encoding

        @encoding = input.encoding
        @place = 0
        @started << @inputs.shift
        @open = @started.last.start(@keep)
      end

      def add(piece)
        before = @text.bytesize
        @text << piece
        @place += piece.bytesize
        ended = @records.ended(piece, @place)
        return over_limit(before, piece) if @whole.zero? && @text.bytesize > MAX_BYTES && @records.limited?

        @whole = before + ended if ended && before + ended > @whole
      end

      # A long record, and perhaps some that follow it.
      def over_limit(before, piece)
        at = piece.index("\n")
        bytes = before + (at ? at + 1 : piece.bytesize)
        # Its other bytes are only counted.
        until at || @open.nil? || (more = @open.read(Input::PIECE, @piece)).nil?
          at = more.index("\n")
          bytes += at ? at + 1 : more.bytesize
        end
        Source.too_long(bytes, @count) if bytes > MAX_BYTES
        @whole = bytes
      end

      # The slab of so many bytes. The others are for the next one.
      def take(bytes)
        text, ends = @text, @ends
        @left -= bytes
        begin_text(bytes == text.bytesize ? "".b : text.slice!(bytes, text.bytesize))
        slab = @records.slab(text.force_encoding(@encoding), ends.select { |place| place < bytes })
        @count += slab.size
        slab
      end

      # Records that are lines.
      class Lines
        # The lines of one text. Where they are is looked for when that is needed.
        class Slab
          attr_reader :text

          # @param ends [Array<Integer>, nil] where inputs end in the text. nil: lines do not end with a line feed.
          # @yieldreturn [Array<Buffer>] where each line begins, and how many bytes it has
          def initialize(text, ends, &lines)
            @text = text
            @ends = ends
            @find = lines
            @words = {}
          end

          def starts = lines.first

          def sizes = lines.last

          def size = starts.size

          # Whether its words can be looked for.
          def words? = !@ends.nil?

          # Where each word of all lines begins, and how many bytes it has. Words have no white space. nil: they are not
          # known.
          #
          # @param strips [Boolean] whether NUL is white space at the ends of lines
          # @param least [Integer] the words are not looked for unless some line has so many bytes
          def words(strips, least)
            @words[strips] = Ikra.__words(text, @ends, strips, least) unless @words.key?(strips)
            @words[strips]
          end

          # How often each word occurs. nil: they are not known.
          #
          # @param strips (see #words)
          # @return [Lazy::WordCounts, nil]
          def counted_words(strips)
            counted, kinds = Ikra.__word_counts(text, @ends, strips)
            Lazy::WordCounts.new(counted, kinds, text) if counted
          end

          # It is kept, and its text must not change.
          def keep = tap { text.freeze }

          def chain(options) = Lines.chain([self], options)

          def free
            text.clear
            [*@lines, *@words.values.flatten.compact].each(&:free)
          end

          # The text for a section that reads lines or words. If it is kept, sections need not look for ASCII each time.
          def noted
            Ikra.__note_ascii(text) if text.frozen? && !@noted
            @noted = true
            text
          end

          private

          def lines = @lines ||= @find.call
        end

        class << self
          # A chain over the lines of these slabs.
          def chain(slabs, options)
            return Lazy.new([], options) if slabs.empty?

            return Lazy::OfLines.new(slabs.first, options) if slabs.one?

            texts = slabs.map(&:noted)
            starts, sizes = %i[starts sizes].map { |what| Buffer.from_list(:i32, slabs.flat_map { |slab| slab.public_send(what).to_list }) }
            numbers = Buffer.from_list(:i64, slabs.each_with_index.flat_map { |slab, number| Array.new(slab.size, number) })
            Lazy.new(0...starts.size, options).map do |i|
              ::Ikra.__text(texts[::Ikra.__at(numbers, i)], ::Ikra.__at(starts, i), ::Ikra.__at(sizes, i))
            end
          end

          # Lines that Ruby found. +before+: the slabs before them.
          def listed(lines, before)
            text = lines.join
            Source.too_long(text.bytesize, before.sum(&:size)) if text.bytesize > MAX_BYTES
            sizes = lines.map(&:bytesize)
            at = 0
            starts = sizes.map { |size| (at += size) - size }
            Slab.new(text.freeze, nil) { [starts, sizes].map { |list| Buffer.from_list(:i32, list) } }
          end
        end

        def initialize(chomp)
          @chomp = chomp
        end

        # The bytes of a piece up to where its last record ends. nil: none does.
        def ended(piece, _place) = piece.rindex("\n")&.succ

        # Whether a record that ends with its input, at this place, must end a slab.
        def alone?(_place) = false

        # Whether records are Strings.
        def limited? = true

        def slab(text, ends) = Slab.new(text, ends) { Ikra.__lines(text, ends, @chomp) }

        # The slab of a frozen text, which is not copied.
        def held(text) = slab(text, []).keep

        def chain(slabs, options) = Lines.chain(slabs, options)
      end

      # Records that are arrays of so many bytes, or the bytes themselves.
      class Slices
        # The bytes of whole slices. Only the last slice may be shorter.
        Slab = Struct.new(:bytes, :count) do
          def keep = self

          def size = count ? (bytes.size + count - 1) / count : bytes.size

          def chain(options)
            bytes, count = *self
            return Lazy.new(0...bytes.size, options).map { |i| ::Ikra.__at(bytes, i) } unless count
            return whole(Lazy.new(0...(bytes.size / count), options)) if (bytes.size % count).zero?

            total = bytes.size
            Lazy.new(0...size, options).map do |i|
              from = i * count
              Array.new(from + count > total ? total - from : count) { |k| ::Ikra.__at(bytes, from + k) }
            end
          end

          def free = bytes.free

          private

          # The slices of all bytes. Kernels keep an array whose size their code tells in registers.
          def whole(chain)
            bytes, count = *self
            case count
            when 1 then chain.map { |i| [::Ikra.__at(bytes, i)] }
            when 2 then chain.map { |i| [::Ikra.__at(bytes, 2 * i), ::Ikra.__at(bytes, (2 * i) + 1)] }
            when 3 then chain.map { |i| [::Ikra.__at(bytes, 3 * i), ::Ikra.__at(bytes, (3 * i) + 1), ::Ikra.__at(bytes, (3 * i) + 2)] }
            when 4
              chain.map do |i|
                [::Ikra.__at(bytes, 4 * i), ::Ikra.__at(bytes, (4 * i) + 1), ::Ikra.__at(bytes, (4 * i) + 2), ::Ikra.__at(bytes, (4 * i) + 3)]
              end
            else chain.map { |i| Array.new(count) { |k| ::Ikra.__at(bytes, (i * count) + k) } }
            end
          end
        end

        def initialize(count)
          @count = count
        end

        # (see Lines#ended) +place+: where the piece ends in its input.
        def ended(piece, place) = piece.bytesize - (place % (@count || 1))

        def alone?(place) = !(place % (@count || 1)).zero?

        def limited? = false

        def slab(text, _ends) = Slab.new(Buffer.from_bytes(:u8, text).tap { text.clear }, @count)

        def held(text) = Slab.new(Buffer.from_bytes(:u8, text), @count)

        # A chain over the slices of these slabs.
        def chain(slabs, options)
          return Lazy.new([], options) if slabs.empty?
          return slabs.first.chain(options) if slabs.one?

          bytes = Buffer.from_bytes(:u8, slabs.map { |slab| slab.bytes.to_bytes }.join)
          return Slab.new(bytes, @count).chain(options) if slabs.take(slabs.size - 1).all? { |slab| (slab.bytes.size % (@count || 1)).zero? }

          starts = Buffer.from_list(:i64, starts_of(slabs))
          Lazy.new(0...(starts.size - 1), options).map do |i|
            from = ::Ikra.__at(starts, i)
            Array.new(::Ikra.__at(starts, i + 1) - from) { |k| ::Ikra.__at(bytes, from + k) }
          end
        end

        private

        # Where slices begin, and the end.
        def starts_of(slabs)
          at = 0
          starts = slabs.flat_map do |slab|
            from = at
            at += slab.bytes.size
            (from...at).step(@count).to_a
          end
          starts << at
        end
      end
    end
  end
end
