# frozen_string_literal: true

module Ikra
  class Lazy
    # What the values of a chain come to (+sum+, +count+, +min+, …). The last kernel reduces them while it computes them, and no list of them is made,
    # where all are Integers or all Floats; else Ruby's own method goes over the list.
    #
    # An element without a value counts for nothing: what is stored for it changes no sum, and is the last of all that is compared. Where that is the
    # result itself, the values are counted. So chains that leave out elements are reduced so only if their blocks change nothing.
    # @api private
    class Total
      # What stands for elements without a value among those that are compared.
      LAST = { min: [(2**63) - 1, Float::INFINITY], max: [-(2**63), -Float::INFINITY] }.freeze

      # @param list [Array, Range] what the last step is given; without a step the values themselves
      # @param error [Exception, nil] follows the list
      # @param told [Explanation::Chain, nil] of what is explained
      def initialize(list, step = nil, error = nil, options = {}, told = nil)
        @list = list
        @step = step
        @error = error
        @options = options
        @told = told
      end

      def sum(start)
        found, value = reduced(:sum)
        return value.sum(start) unless found

        value.eql?(0.0) && none? ? start : start + value
      end

      # By the operator +++: Integers, in whatever order. The block says what a list comes to; Floats are added one after the other, as by Ruby.
      def added(start)
        found, value = reduced(:exact_sum)
        return yield(value) unless found

        start.empty? ? (value unless value.zero? && none?) : start.first + value
      end

      def count
        return @list.size unless @step

        there.tap { failed }
      end

      def min = extreme(:min)

      def max = extreme(:max)

      # Each in a kernel of its own.
      def minmax
        least = extreme(:min, again: true) { |list| return on_list(list, :minmax) }
        [least, extreme(:max, again: true) { |list| return on_list(list, :minmax) }]
      end

      # The first value of which a block's is the least, or the greatest. The step's last stage is that block; of the values +step+ is the same without it.
      # The block may be one that only a section of its own can run: then nothing has run so far but the steps before.
      def by(reduction, step)
        begin
          how, (key, index, nan) = kernel.reduced(reduction, again: true, only: true)
        rescue CompileError
          how = :alone
        end
        failed
        found = Kernel.new(step, @list, @options, open: !@error.nil?)
        return (found.at(index) if index) if how == :reduced && !nan && !last?(reduction, key)

        apart("what its block gives is not all Integers or all Floats, or blocks change what they would run for again") if how == :refused
        apart("its block runs in a section of its own only") if how == :alone
        yield(found.values(nil, strict: true).first)
      end

      private

      def kernel = (@kernel ||= Kernel.new(@step, @list, @options, open: !@error.nil?))

      # Whether a kernel reduced the values, and what to; else a list of them.
      def reduced(reduction, again: false)
        return [false, @list] unless @step

        how, value = kernel.reduced(reduction, again: again || @step.holes?)
        failed
        apart unless how
        [!how.nil?, value]
      end

      # An error follows what the kernel was given, and it comes to that.
      def failed
        raise @error if @error && !kernel.closed?
      end

      def apart(why = "its values are not all Integers or all Floats, or blocks change what they would run for again")
        @told&.apart(why)
      end

      def extreme(reduction, again: false)
        found, value = reduced(reduction, again: again)
        list = found ? (value[2] && kernel.values(nil, strict: true).first) : value
        return block_given? ? yield(list) : on_list(list, reduction) if list

        value.first unless last?(reduction, value.first) && none?
      end

      # As a chain of Ruby's does it: Array's own methods ask elements the other way round.
      def on_list(list, name) = ::Enumerable.instance_method(name).bind_call(list)

      def last?(reduction, value) = @step.holes? && LAST.fetch(reduction).include?(value)

      # How many elements have a value.
      def there
        how, value = kernel.reduced(:count, ending: :there)
        how ? value : value.count(true)
      end

      def none? = @step.holes? && there.zero?
    end
    private_constant :Total
  end
end
