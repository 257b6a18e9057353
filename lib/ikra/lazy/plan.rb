# frozen_string_literal: true

module Ikra
  class Lazy
    # Which stages of a chain become which kernel, and why not one: data, made without running anything.
    #
    # A kernel computes one element of what its stages give from the element's position. So a stage that asks for positions
    # (+with_index zip combine stencil each_slice take drop+) begins another kernel where those of the stages before are known only
    # after these have run (after +select reject filter_map compact+, and at the end of +take_while+). What +flat_map+ gives is
    # joined on the host.
    #
    # A stencil over other stages computes them for each of its neighbours anew, or looks at what a kernel before has computed:
    # the former while that is at most {KERNEL} blocks more for each element.
    # @api private
    class Plan
      # What one more kernel costs for each element (a value written and read again), in runs of a short block.
      KERNEL = 8

      # Stages of one kernel; what is done with its values on the host (+[:take, n]+, +[:drop, n]+, +[:flatten]+, +[:stencil, stage]+); why
      # the next stage is not in it.
      Step = Struct.new(:stages, :ending, :why) do
        # Some elements have no value.
        def holes? = stages.any? { |stage| HOLES.include?(stage.name) }

        # Some elements are the end.
        def ended? = stages.any? { |stage| stage.name == :take_while }

        # It looks at elements beside the one that it computes.
        def looks_around? = stages.any? { |stage| %i[stencil each_slice].include?(stage.name) }

        # There is nothing to compute.
        def bare? = stages.all? { |stage| %i[take drop].include?(stage.name) }

        def to_s = stages.map(&:name).join(".")
      end

      HOLES = %i[select reject filter_map compact].freeze

      attr_reader :steps

      def initialize(stages)
        @steps = [Step.new([])]
        @work = 0
        stages.each { |stage| add(stage) }
        # what ends on the host needs no kernel after it
        @steps.pop if @steps.size > 1 && @steps.last.stages.empty?
      end

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
        @steps << Step.new([])
        @work = 0
      end

      # Cuts before a stage if any of these are there.
      def positioned(stage, names)
        before = @steps.last.stages.reverse.find { |other| names.include?(other.name) }
        finish(nil, "#{stage.name} asks for positions, which are known only after #{before.name} has run") if before
        fuse(stage, @work + 1)
      end

      def limit(stage)
        before = @steps.last.stages.reverse.find { |other| HOLES.include?(other.name) }
        return fuse(stage, @work) unless before

        finish([stage.name, *stage.args], "which elements #{stage} means is known only after #{before.name} has run")
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
          finish(nil, "the stencil would run the blocks before it #{runs} times: #{more} runs more for each element, and one kernel more is as dear as #{KERNEL}")
        end
        work = @work
        positioned(stage, [*HOLES, :take_while])
        @work = (runs * work) + 1
      end
    end
    private_constant :Plan
  end
end
