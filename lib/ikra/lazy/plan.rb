# frozen_string_literal: true

module Ikra
  class Lazy
    # Cuts the stages of a chain into kernels, and says why it cuts. A plan is data; nothing runs.
    #
    # A kernel computes one value of its stages from the position of an element. So a stage that needs positions
    # (+with_index zip combine stencil each_slice take+) begins another kernel where the positions are known only after
    # the stages before have run. That is after +select reject filter_map compact flat_map+, and at the end of
    # +take_while+. Values that +drop+ leaves out are left out on the host.
    #
    # Stages after +flat_map+ go over the array of each element, in the same kernel. Such a kernel gives an array for
    # each element, and the host joins them. It changes no existing object, so it may be given up at any time. The step
    # is then {Step#cut} in two.
    #
    # A stencil over other stages can get their values in three ways. It computes them anew for each neighbour; or for a
    # tile of elements, which share them; or it reads what an earlier kernel has computed. The compiler chooses
    # (+ext/ikra-core/src/sched/stencil.rs+). So a step may have to be {Step#cut} in two then.
    # @api private
    class Plan
      # The step of one kernel:
      #
      # * its stages,
      # * how many values each of its elements has side by side,
      # * what the host does with its values (+[:take, n]+, +[:drop, n]+),
      # * why the next stage is not in it,
      # * and the choice made for each of its stencils that look at other stages.
      Step = Struct.new(:stages, :abreast, :ending, :why, :told, :explained) do
        # Whether it goes over arrays within arrays, for a stencil of more than one dimension.
        def grid? = stages.any? { |stage| stage.name == :stencil && stage.stencil.sizes.size > 1 }

        # Whether some elements have no value.
        def holes? = stages.any? { |stage| HOLES.include?(stage.name) }

        # Whether some elements give several values.
        def flat? = stages.any? { |stage| stage.name == :flat_map }

        # Whether not every element is one value.
        def sparse? = holes? || flat?

        # Whether some elements end the chain.
        def ended? = stages.any? { |stage| stage.name == :take_while }

        # Whether there is nothing to compute.
        def bare? = stages.all? { |stage| %i[take drop].include?(stage.name) }

        # Two steps, cut before the stencil of that number among those that look at other stages.
        def cut(stencil)
          limits = stages.take_while { |stage| %i[take drop].include?(stage.name) }.size
          apart(stages.each_index.select { |index| index > limits && stages[index].name == :stencil }[stencil], told[stencil])
        end

        # Two steps, cut after the first +flat_map+. nil where nothing comes after it.
        def cut_flat(why)
          at = stages.index { |stage| stage.name == :flat_map } + 1
          apart(at, why) if at < stages.size
        end

        # Why no reduction can be a part of it. nil: one can.
        def keeps_apart
          return "nothing is computed before it" if bare? && ending.nil?
          return "a stencil of more dimensions than one gives whole rows" if grid?

          "#{ENDINGS.fetch(ending.first)} is done after the kernel" if ending
        end

        # Whether only a list of all values can be reduced.
        def lists? = !keeps_apart.nil? && (grid? || ending.nil?)

        # The step without its end, once another kernel has found that; the explanation says so.
        def unended
          last = stages.rindex { |stage| stage.name == :take_while }
          explained&.after(stages.take(last + 1).map(&:name))
          dup.tap { |step| step.stages = stages.reject { |stage| stage.name == :take_while } }
        end

        # What the host does with its values.
        def made
          made = ["its arrays one after the other"] if flat?
          [*made, *ending && WORDS[ending.first].call(ending.last)].join(", ") if made || ending
        end

        private

        def apart(at, why)
          first, rest = self.class.new(stages.take(at), abreast, nil, why, []), self.class.new(stages.drop(at), 1, ending, self.why, [])
          explained&.cut(first, rest)
          [first, rest]
        end
      end

      ENDINGS = { take: "taking the first", drop: "leaving out the first" }.freeze

      HOLES = %i[select reject filter_map compact].freeze

      # Stages after which positions are not those of elements.
      SHIFTING = (HOLES + %i[flat_map]).freeze

      attr_reader :steps

      def initialize(stages)
        @stages = stages
        @abreast = 1
        @steps = [step]
        stages.each do |stage|
          add(stage)
          @abreast = stage.abreast(@abreast)
          @steps.last.abreast = @abreast if @steps.last.stages.empty?
        end
        return unless @steps.size > 1 && @steps.last.stages.empty?

        # An end on the host needs no kernel after it.
        @steps.pop
        @steps.last.why = nil
      end

      # The explanation for {Ikra.explain}.
      #
      # @param reduced [Symbol, nil] the reduction that follows
      # @return [Explanation::Chain]
      def explanation(reduced)
        chain = Explanation::Chain.new(@stages.select(&:label).map(&:to_s) + [*reduced].map(&:to_s), kernels = [])
        @steps.each do |step|
          step.told = []
          names = step.stages.filter_map(&:label)
          why, made = step.why, step.made
          last = step.equal?(@steps.last)
          if reduced && last
            apart = step.keeps_apart
            apart ? why = "#{reduced} is not in it: #{apart}" : names << reduced
            made = nil unless apart
          end
          kernel = Explanation::Chain::Kernel.new(names, made, step.told, why, chain)
          step.explained = kernel
          kernels << kernel unless step.bare? && !names.include?(reduced)
          kernels << Explanation::Chain::Kernel.new([:reduce], nil, ["by itself"], nil, chain) if reduced == :reduce && last && step.keeps_apart
        end
        chain
      end

      WORDS = {
        take: ->(count) { "the first #{count} of its values" },
        drop: ->(count) { "its values without the first #{count}" }
      }.freeze
      private_constant :WORDS, :ENDINGS

      private

      def add(stage)
        case stage.name
        when :take, :drop then limit(stage)
        when :with_index, :zip, :combine then positioned(stage, SHIFTING)
        when :each_slice then positioned(stage, SHIFTING + %i[take_while])
        when :take_while then positioned(stage, %i[flat_map], "ends at a position, which is")
        when :stencil then around(stage)
        else
          apart_from_rows
          fuse(stage)
        end
      end

      def step = Step.new([], @abreast, nil, nil, [])

      def fuse(stage) = @steps.last.stages << stage

      def finish(ending, why)
        @steps.last.ending = ending
        @steps.last.why = why
        @steps << step
      end

      # Cuts before a stage if one of these is in the last step.
      def positioned(stage, names, why = "asks for positions, which are")
        apart_from_rows
        before = @steps.last.stages.reverse.find { |other| names.include?(other.name) }
        finish(nil, "#{stage.name} #{why} known only after #{before.name} has run") if before
        fuse(stage)
      end

      # Cuts after a stencil of several dimensions, because the next stage gets whole rows.
      def apart_from_rows
        finish(nil, "a stencil of more dimensions than one gives whole rows") if @steps.last.grid?
      end

      # Adds +take+ or +drop+. Positions determine what +take+ means. Values that +drop+ leaves out are computed all the
      # same, as in Ruby.
      def limit(stage)
        apart_from_rows
        before = @steps.last.stages.reverse.find { |other| stage.name == :take ? SHIFTING.include?(other.name) : !%i[take drop].include?(other.name) }
        return fuse(stage) unless before

        finish([stage.name, *stage.args], stage.name == :take ? "which elements #{stage} means is known only after #{before.name} has run" : "blocks run for what #{stage} leaves out, too")
      end

      def around(stage)
        dimensions = stage.stencil.sizes.size
        return positioned(stage, SHIFTING + %i[take_while]) if dimensions == 1

        alike = @steps.last.stages.all? { |other| other.name == :stencil && other.stencil.sizes.size == dimensions }
        finish(nil, "a stencil of #{dimensions} dimensions goes over whole rows") unless alike
        fuse(stage)
      end
    end
    private_constant :Plan
  end
end
