# frozen_string_literal: true

module Ikra
  class Lazy
    # One link of a chain: a method of Enumerator::Lazy, its arguments and its block.
    # @api private
    class Stage
      attr_reader :name, :args, :block
      # The form of {#block} in the text of a kernel: +[:symbol, name]+, +[:lambda]+ or +[:proc, at least, at most]+.
      # The numbers say how many arguments it takes as a lambda would; nil: any number.
      attr_reader :form
      # What kernels call: the block, or the Method that it was made of.
      attr_reader :callable
      # A key that is equal for stages with the same text, which are compiled together.
      attr_reader :shape

      def initialize(name, args = [], block = nil)
        @name = name
        @args = args
        @block = block
        @callable = block
        code = look_at(block) if block
        @shape = [name, fixed, @form, code].freeze
      end

      # The neighbours that a stencil reads. They are part of the text.
      def stencil = (@stencil ||= Stencil.new([], args.first))

      # How many values are side by side after it, as `x` and `i` are after +with_index+.
      def abreast(before)
        case name
        when :with_index then block ? 1 : 2
        when :zip then args.size + 1
        else selects? ? before : 1
        end
      end

      # Whether its elements are some of those before it.
      def selects? = %i[select reject compact take drop take_while].include?(name)

      # What the program calls it; nil: the program does not have it.
      def label = { map_packed: nil, map_zipped: :map }.fetch(name, name)

      # The number of positions after it. +open+: an error follows the last position before it. Values that the error
      # may affect do not count.
      def size(before, open: false)
        case name
        when :take then [before, args.first].min
        when :drop then [before - args.first, 0].max
        when :each_slice then (open ? before : before + args.first - 1) / args.first
        when :stencil then open ? [before - [stencil.greatest.first, 0].max, 0].max : before
        else before
        end
      end

      # Whether later stages do not reach an error after this many positions.
      def ends?(before) = name == :take && args.first <= before

      def to_s = "#{label}#{"(#{args.map(&:inspect).join(", ")})" unless args.empty?}"

      private

      # The arguments that the text depends on.
      def fixed
        case name
        when :stencil then [stencil.places, (stencil.form(block, false) if block)]
        when :zip, :combine then args.size
        end
      end

      # Finds the form of a block. Gives an identity of its code.
      def look_at(block)
        if !block.lambda?
          least = block.arity.negative? ? -block.arity - 1 : block.arity
          @form = [:proc, least, (block.parameters.count { |kind, _| kind == :opt } unless block.parameters.any? { |kind, _| kind == :rest })]
        elsif block.source_location.nil? && (name = block.inspect[/\(&:(.*)\) \(lambda\)>\z/, 1])
          @form = [:symbol, name.delete_prefix('"').delete_suffix('"')]
        else
          @form = [:lambda]
        end
        return if @form.first == :symbol

        code = RubyVM::InstructionSequence.of(block)
        @callable = method_of(block) if code.nil? && block.source_location
        code || block.source_location
      end

      # The Method of a block from `&method(:name)`: kernels cannot hold a Proc without code.
      def method_of(block)
        receiver = block.binding.receiver
        place = block.source_location
        there = (receiver.methods + receiver.private_methods).map { |name| receiver.method(name) }.select { |method| method.source_location == place }
        # Aliases are equal. If other methods begin on the same line, it is not known which is meant.
        method, other = there.uniq
        method && other.nil? ? method : block
      end
    end
    private_constant :Stage

    # A chain as plain Ruby, for users who asked for that where kernels cannot run it.
    # @api private
    class Chain
      def initialize(lazy)
        @chain = lazy.stages.reduce(lazy.base.lazy) { |chain, stage| add(chain, stage) }
      end

      def to_a = @chain.to_a

      def first(count) = @chain.first(count)

      def reduce(*start, block) = @chain.inject(*start, &block)

      # The values before an error, and the error: those who go over the chain meet it where it is.
      def each_with_error = [@chain, nil]

      private

      def add(chain, stage)
        block = stage.block
        case stage.name
        when :combine then chain.zip(*stage.args).map { |*values| block.call(*values) }
        when :stencil then Plain.new(chain.to_a, :pstencil, block, stage.args, nil).value.lazy
        when :map_zipped then chain.map(&block)
        when :map_packed then chain.map { |*values| block.call(values.size == 1 ? values.first : values) }
        else chain.public_send(stage.name, *stage.args, &block)
        end
      end
    end
    private_constant :Chain
  end
end
