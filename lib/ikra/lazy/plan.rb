# frozen_string_literal: true

module Ikra
  class Lazy
    # Which stages of a chain become which kernel, and why not one: data, made without running anything.
    #
    # A kernel computes one element of what its stages give from the element's position. So a stage that asks for positions
    # (+with_index zip combine stencil each_slice take+) begins another kernel where those of the stages before are known only
    # after these have run (after +select reject filter_map compact+, and at the end of +take_while+). What +flat_map+ gives is
    # joined on the host, and what +drop+ leaves out is left out there.
    #
    # A stencil over other stages computes them for each of its neighbours anew, or looks at what a kernel before has computed:
    # the former while that is at most {KERNEL} blocks more for each element.
    # @api private
    class Plan
      # What one more kernel costs for each element (a value written and read again), in runs of a short block.
      KERNEL = 8

      # Stages of one kernel; how many values stand side by side in each element that it is given; what is done with its values on the host
      # (+[:take, n]+, +[:drop, n]+, +[:flatten]+, +[:stencil, stage]+); why the next stage is not in it; what else there is to say.
      Step = Struct.new(:stages, :abreast, :ending, :why, :note) do
        # Some elements have no value.
        def holes? = stages.any? { |stage| HOLES.include?(stage.name) }

        # Some elements are the end.
        def ended? = stages.any? { |stage| stage.name == :take_while }

        # There is nothing to compute.
        def bare? = stages.all? { |stage| %i[take drop].include?(stage.name) }

        # Why no reduction is a part of it; nil: it may be.
        def keeps_apart
          return "nothing is computed before it" if bare? && ending.nil?
          return "#{ENDINGS.fetch(ending.first)} is done after the kernel" if ending

          "where take_while ends is known only after it has run" if ended?
        end
      end

      ENDINGS = { take: "taking the first", drop: "leaving out the first", flatten: "joining what flat_map gives", stencil: "the stencil" }.freeze

      HOLES = %i[select reject filter_map compact].freeze

      attr_reader :steps

      def initialize(stages)
        @stages = stages
        @work = 0
        @abreast = 1
        @steps = [Step.new([], 1)]
        stages.each do |stage|
          add(stage)
          @abreast = stage.abreast(@abreast)
          @steps.last.abreast = @abreast if @steps.last.stages.empty?
        end
        return unless @steps.size > 1 && @steps.last.stages.empty?

        # what ends on the host needs no kernel after it
        @steps.pop
        @steps.last.why = nil
      end

      # What {Ikra.explain} tells.
      #
      # @param reduced [Symbol, nil] the reduction that follows
      # @return [Explanation::Chain]
      def explanation(reduced)
        kernels = []
        @steps.each do |step|
          # which is the reduction's own block
          names = reduced ? step.stages.map(&:name) - [:map_packed] : step.stages.map(&:name)
          then_, argument = step.ending
          why = step.why
          last = step.equal?(@steps.last)
          if reduced && last
            step.keeps_apart ? why = "#{reduced} is not in it: #{step.keeps_apart}" : names << reduced
          end
          kernels << Explanation::Chain::Kernel.new(names, WORDS[then_]&.call(argument), step.note, why) unless step.bare? && !names.include?(reduced)
          kernels << Explanation::Chain::Kernel.new([:stencil], nil, nil, nil) if then_ == :stencil
          kernels << Explanation::Chain::Kernel.new([:reduce], nil, "by itself", nil) if reduced == :reduce && last && step.keeps_apart
        end
        Explanation::Chain.new((@stages.map(&:to_s) - ["map_packed"]) + [*reduced].map(&:to_s), kernels)
      end

      WORDS = {
        take: ->(count) { "the first #{count} of its values" },
        drop: ->(count) { "its values without the first #{count}" },
        flatten: ->(_) { "its arrays one after the other" }
      }.freeze
      private_constant :WORDS, :ENDINGS

      private

      def add(stage)
        case stage.name
        when :take, :drop then limit(stage)
        when :with_index, :zip, :combine then positioned(stage, HOLES)
        when :each_slice then sliced(stage)
        when :stencil then around(stage)
        else
          fuse(stage, @work + 1)
          return unless stage.name == :flat_map

          finish([:flatten], "how many elements flat_map gives is known only after it has run")
        end
      end

      def fuse(stage, work)
        @steps.last.stages << stage
        @work = work
      end

      def finish(ending, why)
        @steps.last.ending = ending
        @steps.last.why = why
        @steps << Step.new([], @abreast)
        @work = 0
      end

      # Cuts before a stage if any of these are there.
      def positioned(stage, names)
        before = @steps.last.stages.reverse.find { |other| names.include?(other.name) }
        finish(nil, "#{stage.name} asks for positions, which are known only after #{before.name} has run") if before
        fuse(stage, @work + 1)
      end

      # Positions decide what +take+ means; what +drop+ leaves out runs all the same, as in Ruby.
      def limit(stage)
        before = @steps.last.stages.reverse.find { |other| stage.name == :take ? HOLES.include?(other.name) : !%i[take drop].include?(other.name) }
        return fuse(stage, @work) unless before

        finish([stage.name, *stage.args], stage.name == :take ? "which elements #{stage} means is known only after #{before.name} has run" : "blocks run for what #{stage} leaves out, too")
      end

      def sliced(stage)
        work = @work
        positioned(stage, [*HOLES, :take_while])
        @work = stage.args.first * (work + 1)
      end

      def around(stage)
        stencil = stage.stencil
        if stencil.sizes.size > 1
          @steps.last.why = "a stencil of #{stencil.sizes.size} dimensions goes over whole rows" unless @steps.last.stages.empty?
          return finish([:stencil, stage], "a stencil of #{stencil.sizes.size} dimensions gives whole rows")
        end
        runs = stage.form && stencil.form(stage.block, false) == :relative ? stencil.greatest.first - stencil.least.first + 1 : stencil.offsets.size
        more = (runs - 1) * @work
        if more > KERNEL
          finish(nil, "stencil would run the blocks before it #{runs} times for each element; one kernel more is as dear as #{KERNEL} more runs")
        end
        positioned(stage, [*HOLES, :take_while])
        work = @steps.last.stages.size > 1 ? @work - 1 : 0
        @steps.last.note = "stencil runs the blocks before it #{runs} times for each element; one kernel more is as dear as #{KERNEL} more runs" if work.positive?
        @work = (runs * work) + 1
      end
    end
    private_constant :Plan
  end
end
