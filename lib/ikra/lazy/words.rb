# frozen_string_literal: true

module Ikra
  class Lazy
    # The words of lines as the elements of a chain.
    #
    # Where the first block of a chain over lines looks at one word of a line after the other, kernels run it over the
    # words of all lines instead. So one job has no more to do than others, however long its line is, and neighbours
    # read neighbouring bytes. The values are the same. Which blocks these are: +ext/ikra-core/src/syntax/words.rs+.
    #
    # Exceptions tell the places of words, so the lines are used where kernels raise, or {NeedsAll}. They are also used
    # where the words are not known.
    # @api private
    class Words < Deferred
      # Finding words takes as long as one kernel saves. So lines that are read for one result are taken by words only
      # if some have so many bytes.
      LONG = 1 << 10

      class << self
        # The chain of such stages over the lines of a slab. nil where the first one may look at more than words.
        #
        # @param lines [Lazy] the chain over lines
        # @param emitter [Proc, nil] a block that emits pairs for each value. Without stages, it looks at words.
        # @param least [Integer] (see Source::Slabs::Lines::Slab#words)
        def of(slab, lines, stages, emitter, least: 0)
          first = stages.first
          return unless slab.is_a?(Source::Slabs::Lines::Slab) && slab.words? && (first ? first.name == :flat_map : emitter)

          splits, strips = wise(first ? first.block : emitter, first.nil?)
          return if splits.nil?

          words = OfWords.new(slab, lines.options, strips, least, splits, first ? nil : emitter)
          rest = stages.drop(splits ? 1 : 0)
          new(lines, rest.empty? ? words : words.__send__(:followed_by, rest))
        end

        private

        def wise(block, emits)
          splits, strips, *names = Ikra.__word_wise(block, emits)
          [splits, strips] if [String, Array].zip(names).all? { |type, list| list && CoreMethods.own?(type, list) }
        end
      end

      # @param lines [Lazy] the chain over lines
      # @param words [Lazy] the chain over their words, with the same values
      def initialize(lines, words)
        super(lines.options) { lines }
        @lines = lines
        @words = words
      end

      %i[
        to_a force entries first reduce inject count sum find detect any? none? all? one? min max minmax sort min_by max_by
        minmax_by sort_by partition group_by uniq map_reduce tally top
      ].each do |name|
        define_method(name) do |*args, **options, &block|
          either { |chain| chain.public_send(name, *args, **options, &block) }
        end
      end

      private

      %i[emitted counted_texts measured].each do |name|
        define_method(name) { |*args, &block| either { |chain| chain.__send__(name, *args, &block) } }
      end

      # Values of words before an exception may be of the line that raises it.
      def before_error
        either { |chain| chain.__send__(:before_error).tap { |_, raised| raise NeedsAll if raised && chain.equal?(@words) } }
      end

      def counted_words(...) = @words.__send__(:counted_words, ...)

      # What the block makes of the words, or else of the lines. What another thread raises here ends both.
      def either
        yield @words
      rescue NeedsAll, Located, CompileError
        yield @lines
      end

      def followed_by(stages) = Words.new(*[@lines, @words].map { |chain| chain.__send__(:followed_by, stages) })
    end

    # What is not taken apart yet.
    # @api private
    Bytes = Struct.new(:size)

    # How often each word of a text occurs. Strings are made where they are asked for.
    # @api private
    class WordCounts
      # @return [Integer] the number of different words
      attr_reader :size

      # @param counted [Ikra::WordCounts]
      # @param text [String] which must not change
      def initialize(counted, size, text)
        @counted = counted
        @size = size
        @text = text
      end

      # The words and their numbers. They are in the order of first places, or so many of the most frequent ones in that
      # of their numbers.
      #
      # @param frozen [Boolean] whether the words are to be frozen
      # @return [Array(Array<String>, Array<Integer>)]
      def lists(frozen, most = nil) = ::Ikra.__measured(:map_reduce, @size) { ::Ikra.__words_of(@counted, @text, frozen, most) }

      def to_h = @to_h ||= ::Ikra.__paired(*lists(true))

      def to_a = to_h.to_a

      def [](word) = to_h[word]

      def top(count) = lists(true, count).transpose
    end

    # A chain over the words of one slab, without other stages.
    # @api private
    class OfWords < Deferred
      # The backends that count words without a kernel.
      COUNTING = %w[auto cpu].freeze
      private_constant :COUNTING

      # @param strips (see Source::Slabs::Lines::Slab#words)
      # @param least (see Source::Slabs::Lines::Slab#words)
      # @param all [Boolean] whether its values are wanted, and all that the emitter does is to count them
      # @param emitter [Proc, nil] a block that emits pairs for the words of each line
      def initialize(slab, options, strips, least, all, emitter)
        options = { **options, __slab: true }.freeze
        super(options) do
          starts, sizes = slab.words(strips, least)
          raise NeedsAll unless starts

          text = slab.noted
          Lazy.new(0...starts.size, options).map { |i| ::Ikra.__text(text, ::Ikra.__at(starts, i), ::Ikra.__at(sizes, i)) }
        end
        @slab = slab
        @strips = strips
        @all = all
        @emitter = emitter
      end

      def top(count)
        most = ::Ikra.__count(count) or return super
        lists = ::Ikra.__measured(:top, self) { counted_words&.lists(false, most) } if counts?(nil)
        lists&.transpose || super
      end

      private

      # Words are not looked for to say how many they are.
      def measured = COUNTING.include?(backend) && @all ? Bytes.new(@slab.text.bytesize) : super

      def counted_words(emitter = nil) = (@slab.counted_words(@strips) if counts?(emitter))

      # Whether all that is wanted of words is how often they occur, and the host can count them.
      def counts?(emitter) = @all && COUNTING.include?(backend) && (emitter.equal?(@emitter) || (@emitter.nil? && ::Ikra.__counts?(emitter)))

      def backend = options.fetch(:backend, Ikra.config.backend).to_s
    end
    private_constant :OfWords

    # A chain over the lines of one slab, without other stages.
    # @api private
    class OfLines < Deferred
      def initialize(slab, options)
        super(options) do
          starts, sizes, text = slab.starts, slab.sizes, slab.noted
          Lazy.new(0...starts.size, options).map { |i| ::Ikra.__text(text, ::Ikra.__at(starts, i), ::Ikra.__at(sizes, i)) }
        end
        @slab = slab
      end

      def map_reduce(*args, **options, &block)
        words = Words.of(@slab, Deferred.new(self.options) { self }, [], block) if block
        words ? words.map_reduce(*args, **options, &block) : super
      end

      private

      def followed_by(stages)
        lines = super
        Words.of(@slab, lines, stages, nil) || lines
      end
    end
  end
end
