# frozen_string_literal: true

module Ikra
  class Lazy
    # The words of lines as the elements of a chain.
    #
    # Where the first block of a chain over lines looks at one word of a line after the other, kernels run it over the
    # words of all lines instead. So one job has no more to do than others, however long its line is, and neighbours
    # read neighbouring bytes. The values are the same. Which blocks these are: +ext/ikra-core/src/syntax/words.rs+.
    #
    # Exceptions tell the places of words, so the lines are used where kernels raise, or {NeedsAll}.
    # @api private
    class Words < Lazy
      # Finding words takes as long as one kernel saves. So lines that are read for one result are taken by words only
      # if some have so many bytes.
      LONG = 1 << 10

      class << self
        # The chain over the words of a slab that has the values of these stages, the first of which looks at words. nil
        # where it may look at more.
        #
        # @param emitter [Proc, nil] a block that emits pairs for each value. Without stages, it looks at words.
        # @param least [Integer] (see Source::Slabs::Lines::Slab#words)
        def of(slab, stages, emitter, options, least: 0)
          first = stages.first
          return unless slab.is_a?(Source::Slabs::Lines::Slab) && (first ? first.name == :flat_map : emitter)

          splits, strips = wise(first ? first.block : emitter, first.nil?)
          chain = slab.words({ **options, __slab: true }.freeze, strips, least) unless splits.nil?
          Lazy.new(chain.base, chain.options, [*chain.stages, *stages.drop(splits ? 1 : 0)]) if chain
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
        super(lines.base, lines.options, lines.stages)
        @lines = lines
        @words = words
      end

      %i[
        to_a force entries first reduce inject count sum find detect any? none? all? one? min max minmax sort min_by max_by
        minmax_by sort_by partition group_by uniq map_reduce tally
      ].each do |name|
        define_method(name) do |*args, **options, &block|
          Words.either(@words, @lines) { |chain| chain.public_send(name, *args, **options, &block) }
        end
      end

      def each(&block)
        return self unless block

        list, error = Words.either(@words, @lines) do |chain|
          chain.__send__(:before_error).tap { |_, raised| raise NeedsAll if raised && chain.equal?(@words) }
        end
        list.each(&block)
        raise error if error

        self
      end

      # What the block makes of the words, or else of the lines. What another thread raises here ends both.
      # @api private
      def self.either(words, lines)
        yield words
      rescue NeedsAll, Located, CompileError
        yield lines
      end

      private

      def with(name, *args, &block) = Words.new(*[@lines, @words].map { |chain| chain.__send__(:with, name, *args, &block) })
    end

    # A chain over the lines of one slab, without other stages.
    # @api private
    class OfLines < Lazy
      def initialize(slab, chain)
        super(chain.base, chain.options, chain.stages)
        @slab = slab
        @lines = chain
      end

      def map_reduce(*args, **options, &block)
        words = Words.of(@slab, [], block, self.options) if block
        words ? Words.either(words, @lines) { |chain| chain.map_reduce(*args, **options, &block) } : super
      end

      private

      def with(name, *args, &block)
        lines = super
        words = Words.of(@slab, [lines.stages.last], nil, options)
        words ? Words.new(lines, words) : lines
      end
    end
  end
end
