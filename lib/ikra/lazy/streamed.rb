# frozen_string_literal: true

module Ikra
  class Lazy
    # A chain over more records than are read at once ({Source}). What folds its values does so slab by slab, and merges
    # the results. They are those of a chain over all records ({#whole}), which is used where slabs do not tell them:
    #
    # - where a stage needs other values, or a position among values of which some were left out
    # - where a block asks for +Ikra.index+, changes something, or draws random numbers ({NeedsAll})
    # - for what is rounded in an order of its own: a Float's +sum+, and +reduce+
    # - for what needs all values anyway, such as +sort+
    #
    # Records are read anew for each result, but for those of pipes.
    # @api private
    class Streamed < Lazy
      # Stages that look at one value, and at nothing else.
      SINGLE = %i[map map_packed select reject filter_map flat_map compact].freeze
      # Stages that count records.
      COUNTING = %i[take drop with_index].freeze
      # The operator whose Integers are added in any groups.
      ADDS = [:+, "+"].freeze
      private_constant :SINGLE, :COUNTING, :ADDS

      # @!group Values

      def to_a = by_slabs(:to_a) { |chains| chains.flat_map(&:to_a) }
      alias force to_a
      alias entries to_a

      def first(count = (one = true))
        return first(1).first if one

        count = natural(count, "attempt to take negative size")
        return [] if count.zero?

        by_slabs(:first, count) do |chains|
          found = []
          chains.each do |chain|
            found.concat(chain.first(count - found.size))
            break if found.size >= count
          end
          found
        end
      end

      def each(&block)
        return self unless block

        given = 0
        in_slabs? or raise NeedsAll
        each_chain do |chain, before|
          list, error = Streamed.placed(before) { chain.__send__(:before_error) }
          list.each do |value|
            given += 1
            block.call(value)
          end
          Streamed.placed(before) { raise error } if error
        end
        self
      rescue NeedsAll
        seen = 0
        whole.each { |value| block.call(value) if (seen += 1) > given }
        self
      end

      def count(*item, &block) = by_slabs(:count, *item, block: block) { |chains| chains.sum { |chain| chain.count(*item, &block) } }

      def sum(start = 0, &block)
        return whole.sum(start, &block) unless start.is_a?(Integer)

        by_results(:sum, start, block: block) { |chains| start + all_of(Integer, chains.map { |chain| chain.sum(&block) }).sum }
      end

      %i[min max].each do |name|
        define_method(name) do |count = nil, &block|
          next whole.public_send(name, count, &block) if count || block

          by_results(name) { |chains| Total.on_list(extremes(chains, name), name) }
        end
      end

      def minmax(&block)
        return whole.minmax(&block) if block

        by_results(:minmax) do |chains|
          least, greatest = extremes(chains, :minmax).transpose
          [Total.on_list(least || [], :min), Total.on_list(greatest || [], :max)]
        end
      end

      def reduce(*args, &block)
        by_results(:reduce, *args, block: block) do |chains|
          operator = args.last unless block
          # nil as a start is not told from no value.
          raise NeedsAll if args.include?(nil) || (block.nil? && !ADDS.include?(operator))

          # Integers and Strings are combined in any groups.
          parts = chains.each_with_index.flat_map do |chain, number|
            found = number.zero? ? chain.reduce(*args, &block) : chain.reduce(*operator, &block)
            found.nil? ? none(chain) : [found]
          end
          all_of(!operator && parts.first.is_a?(String) ? String : Integer, parts)
          operator ? parts.reduce(:+) : merging { Operation.call(parts, :preduce, options, block) }
        end
      end
      alias inject reduce

      def tally(*counts)
        return super unless counts.empty?

        by_slabs(:tally) do |chains|
          chains.each_with_object({}) do |chain, tally|
            chain.__send__(:counted) do |values, counts|
              # Keys are the very elements, which Hash#[]= would copy.
              next tally.replace(::Ikra.__counted(values, counts)) if tally.empty?

              values.tally(tally)
              values.zip(counts) { |value, count| tally[value] += count - 1 if count > 1 }
            end
          end
        end
      end

      def group_by(&block)
        return super unless block

        by_slabs(:group_by, block: block) do |chains|
          chains.each_with_object({}) do |chain, groups|
            chain.group_by(&block).each { |key, values| groups[key] = (before = groups[key]) ? before.concat(values) : values }
          end
        end
      end

      def uniq(&block)
        by_slabs(:uniq, block: block) do |chains|
          firsts = {}
          chains.each { |chain| chain.__send__(:keyed, block) { |key, value| firsts[key] = value unless firsts.key?(key) } }
          firsts.values
        end
      end

      # nil: nothing is known before records are read.
      def size = nil

      # @!endgroup

      # The chain over all records, which are read at once and kept.
      # @api private
      def whole
        all = @base.whole(@options)
        Lazy.new(all.base, @options, [*all.stages, *@stages])
      end

      # Yields the chains of all slabs, and how many records are before each.
      #
      # @param emitter [Proc, nil] a block that emits pairs for each value
      # @api private
      def each_chain(emitter = nil)
        before = 0
        options = @options.merge(__slab: true).freeze
        @base.each_slab do |slab|
          size, stages = slab.size, stages_from(before)
          records = slab.chain(options)
          lines = Deferred.new(options) { Lazy.new(records.base, options, [*records.stages, *stages]) }
          yield Words.of(slab, lines, stages, emitter, least: Words::LONG) || lines, before
          before += size
          break unless stages_from(before)
        end
      end

      # Exceptions that are raised within the block tell the places of elements among all.
      # @api private
      def self.placed(before)
        yield
      rescue StandardError => e
        move(e) { |index| index + before }
        raise
      end

      # Changes the place that an exception tells.
      # @api private
      def self.move(error)
        return unless error.is_a?(Located) && (place = error.ikra)

        error.instance_variable_set(:@ikra, Position.new(yield(place.index), place.tick).freeze)
      end

      # Whether it can be processed slab by slab.
      # @api private
      def in_slabs?
        # Up to there values are records, whose positions are known.
        known = @stages.take_while { |stage| !Plan::SHIFTING.include?(stage.name) }
        !@base.whole? && !stages_from(0).nil? && @stages.each_with_index.all? { |stage, at| SINGLE.include?(stage.name) || (at < known.size && COUNTING.include?(stage.name)) }
      end

      # Whether records can be read again.
      # @api private
      def again? = @base.again?

      # Yields the chains of all slabs.
      # @api private
      def each_placed
        each_chain { |chain, before| Streamed.placed(before) { yield chain } }
      end

      private

      # The stages of a slab that so many records are before. nil: the chain has ended before it.
      def stages_from(before)
        @stages.filter_map do |stage|
          next stage unless COUNTING.include?(stage.name)
          next Stage.new(:with_index, [stage.args.first + before], stage.block) if stage.name == :with_index

          left = stage.args.first - before
          return if stage.name == :take && !left.positive?

          before = [-left, 0].max if stage.name == :drop
          Stage.new(stage.name, [left]) if left.positive?
        end
      end

      def followed_by(stages) = Streamed.new(@base, @options, [*@stages, *stages])

      # What the block makes of the chains of all slabs, or else the result of the chain over all records.
      def by_slabs(name, *args, block: nil)
        return whole.public_send(name, *args, &block) unless in_slabs?

        begin
          yield to_enum(:each_placed)
        rescue NeedsAll
          whole.public_send(name, *args, &block)
        end
      end

      # The same where results may not fit each other, or their merging may raise. Then all records are needed after
      # some slabs, and must be read again.
      def by_results(name, *args, block: nil, &work)
        return whole.public_send(name, *args, &block) unless again?

        by_slabs(name, *args, block: block, &work)
      end

      # What raises here is raised for all values instead, in their own order.
      def merging
        yield
      rescue StandardError
        raise NeedsAll
      end

      # The list, if its elements are of this class.
      def all_of(type, list) = list.all?(type) ? list : raise(NeedsAll)

      # The results of slabs that have values.
      def extremes(chains, name)
        found = chains.flat_map do |chain|
          value = chain.public_send(name)
          value.nil? || value == [nil, nil] ? none(chain) : [value]
        end
        # NaN is not compared, and a comparison that raises is to be the first one of all.
        values = name == :minmax ? found.flatten(1) : found
        raise NeedsAll unless [Integer, Float, String].any? { |type| values.all?(type) } && values.none? { |value| value.is_a?(Float) && value.nan? }

        found
      end

      # No result, for a slab without values. nil may be one.
      def none(chain) = chain.first(1).empty? ? [] : raise(NeedsAll)

      # What chains do with all values.
      %i[result total by emitted counted_texts].each { |name| define_method(name) { |*args, &block| whole.__send__(name, *args, &block) } }
    end

    private

    # Yields each value once, and how often it occurs.
    def counted
      given = ->(found) { yield(found.keys, found.values) }
      values, counts, starts, combined = ::Ikra.__grouping(self) { |groups| groups.groups(self, nil, :count) { |list| return given[list.tally] } }
      return given[tally] unless values

      yield(values, combined ? counts : starts.each_cons(2).map { |from, to| to - from })
    end

    # Yields each of the block's values once, and the first value that gives it. Without a block, each value twice.
    def keyed(block, &found)
      return uniq.each { |value| yield(value, value) } unless block

      keys, values, starts, combined = ::Ikra.__grouping(self) { |groups| groups.groups(self, block, :first) }
      return keys.each_index { |at| yield(keys[at], values[combined ? at : starts[at]]) } if keys

      list = to_a
      ::Ikra.__operate_now(list, :pmap, options, block).zip(list, &found)
    end
  end
end
