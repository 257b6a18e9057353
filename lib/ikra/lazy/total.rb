# frozen_string_literal: true

module Ikra
  class Lazy
    # The reduction of a chain's values (+sum+, +count+, +min+, …). Where all are Integers or all Floats, the last
    # kernel reduces them while it computes them, and makes no list. Else Ruby's own method goes over the list.
    #
    # An element without a value must not count. So a neutral number is stored for it: it changes no sum, and comes last
    # in every comparison. Where the result is that number, the values are counted. So chains that leave out elements
    # are reduced in this way only if their blocks change nothing.
    # @api private
    class Total
      # The result of Ruby's own method, as a chain of Ruby's has it. Array's own methods compare elements the other way
      # round, and add otherwise. A Range's need not go over it.
      def self.on_list(list, name, *args)
        list.is_a?(Range) ? list.public_send(name, *args) : ::Enumerable.instance_method(name).bind_call(list, *args)
      end

      # @param list [Array, Range] the elements of the last step; without a step the values themselves
      # @param error [Exception, nil] the error that follows the list
      # @param told [Explanation::Chain, nil] the explanation, where one is collected
      # @param to [Integer, nil] positions from there on are not part of the step; the error follows there
      def initialize(list, step = nil, error = nil, options = {}, told = nil, to: nil)
        @to = to
        @list = list
        @step = step
        @error = error
        @options = options
        @told = told
      end

      def sum(start)
        found, value = reduced(:sum)
        return Total.on_list(value, :sum, start) unless found

        value.eql?(0.0) && none? ? start : start + value
      end

      # The result of the operator +++. Integers are added in any order. For a list the block gives the result. Floats
      # are added one after the other, as by Ruby.
      def added(start)
        found, value = reduced(:exact_sum)
        return yield(value) unless found

        start.empty? ? (value unless value.zero? && none?) : start.first + value
      end

      def count
        return @list.size unless @step
        return in_parts { |parts| parts.sum { |_, _, count| count } } if in_parts?

        there.tap { failed }
      end

      def min = extreme(:min)

      def max = extreme(:max)

      # The least and the greatest value. Elements without a value are left out first, because no number comes last both
      # ways.
      def minmax
        found, value = reduced(:minmax, again: false)
        return Total.on_list(value, :minmax) unless found

        least, greatest = value
        least[2] ? Total.on_list(values, :minmax) : [least.first, greatest.first]
      end

      # The first value with the least, or the greatest, value of a block, which is the step's last stage. The block may
      # be one that only a section of its own can run. Then only the steps before have run so far.
      def by(reduction)
        values = @step.dup.tap { |step| step.stages = step.stages[0...-1] }
        return of_listed(kernel_of(values)) { |list| yield(list) } if in_parts?

        begin
          how, (key, index, nan) = kernel.reduced(reduction, again: true, only: true)
        rescue CompileError
          how = :alone
        end
        found = kernel_of(values, whole: true)
        if how == :reduced && !nan && !filled?(reduction, key)
          failed
          return index && found.at(index)
        end

        apart("what its block gives is not all Integers or all Floats, or blocks change what they would run for again") if how == :refused
        apart("its block runs in a section of its own only") if how == :alone
        of_listed(found) { |list| yield(list) }
      end

      private

      def kernel = (@kernel ||= kernel_of(@step))

      def kernel_of(step, **more) = Kernel.new(step, @list, @options, open: @to.nil? && !@error.nil?, to: @to, **more)

      # Whether a kernel reduced the values, and the result. Else a list of the values.
      #
      # @param again [Boolean] whether values may have to be counted, too
      def reduced(reduction, again: true)
        return [false, @list] unless @step
        return reduced_in_parts(reduction) if in_parts?
        return reduced_together(reduction) if @step.flat?

        how, value = kernel.reduced(reduction, again: again && @step.holes?)
        failed
        apart unless how
        [!how.nil?, value]
      end

      # After +flat_map+, the values of each element are first reduced, where they are Integers, or for extremes Floats.
      # Otherwise the values are reduced where the kernel left them. But Floats that +flat_map+ itself gives are added
      # one after the other.
      def reduced_together(reduction)
        ending = TOGETHER[reduction]
        ending = nil if ending == :sum && @options.fetch(:overflow, Ikra.config.overflow).to_s == "wrap"
        value = kernel.reduced_together(reduction == :exact_sum ? :sum : reduction, ending) if ending
        return [true, value].tap { failed } if value

        # There may be more kernels then, and the reduction may be a part of the last.
        reduced = kernel.behind? || reduction == :minmax ? reduced_in_parts(reduction) : [false, listed(kernel)]
        apart(kernel.given_up || "behind flat_map it is made of the values", ending: @step.made)
        reduced
      end

      TOGETHER = { sum: :sum, exact_sum: :sum, min: :min, max: :max }.freeze
      private_constant :TOGETHER

      # All values of a kernel. Raises the error that follows, if the kernel reaches it.
      def listed(kernel) = of_listed(kernel) { |list| list }

      # What the given block makes of all values of a kernel. Raises the error that follows, if the kernel reaches it,
      # after the block has seen the values before it.
      def of_listed(kernel)
        list, error, enough = kernel.values(nil)
        error = @error if error.nil? && !kernel.closed?
        result = yield(list)
        raise error if error && !enough

        result
      end

      # Whether the values to be reduced are not all that the kernel computes.
      def in_parts? = !@step.ending.nil? || @step.ended?

      # Reduces the values, or what +take+ and +drop+ leave of them, in the parts in which they were computed. Parts
      # that are numbers are reduced where the kernel left them. Then the results of the parts are combined.
      def reduced_in_parts(reduction)
        in_parts do |parts|
          numbers = parts.all? { |values, _, _| values.is_a?(Buffer) && values.dtype == (reduction == :exact_sum ? :i64 : parts.first.first.dtype) }
          parts = parts.reject { |_, _, count| count.zero? }
          if numbers && !parts.empty? && parts.first.first.dtype != :bool
            each = parts.map { |values, from, count| Ikra.__reduce(values, reduction == :exact_sum ? :sum : reduction, from, count, nil) }
            together = together(reduction, each)
            next [true, together] if together
          end
          [false, parts.flat_map { |values, from, count| (values.is_a?(Buffer) ? values.to_list : values)[from, count] }]
        end
      end

      # The combined result of all parts. nil where there is a NaN among them.
      def together(reduction, each)
        case reduction
        when :sum, :exact_sum then each.sum
        when :minmax
          both = [:min, :max].zip(each.transpose).map { |which, extremes| together(which, extremes) }
          both unless both.include?(nil)
        else
          each.reduce { |one, other| other.first.public_send(reduction == :min ? :< : :>, one.first) ? other : one } unless each.any?(&:last)
        end
      end

      # Yields the parts in which the values were computed, each with the position and number of values that count.
      def in_parts
        kernel.left(strict: @error.nil?) do |parts, error, enough|
          error = @error if error.nil? && !kernel.closed?
          raise error if error && !enough

          yield(parts)
        end
      end

      # Raises the error that follows the list, if the kernel reaches it.
      def failed
        raise @error if @error && !kernel.closed?
      end

      def apart(why = "its values are not all Integers or all Floats, or blocks change what they would run for again", ending: nil)
        @told&.apart(why, ending: ending)
      end

      def extreme(reduction)
        found, value = reduced(reduction)
        return Total.on_list(value, reduction) unless found
        return Total.on_list(values, reduction) if value[2]

        value.first unless filled?(reduction, value.first) && none?
      end

      # The values, for Ruby to compare: there is a NaN among them.
      def values = kernel.values(nil, strict: true).first

      # Whether a result may be the neutral number of elements without a value.
      def filled?(reduction, value) = @step.sparse? && Ikra.__filled(reduction).include?(value)

      # The number of elements that have a value.
      def there
        return kernel.reduced_together(:sum, :count) || in_parts { |parts| parts.sum { |_, _, count| count } } if @step.flat?

        how, value = kernel.reduced(:count, ending: :there)
        how ? value : value.count(true)
      end

      def none? = @step.sparse? && !in_parts? && there.zero?
    end
    private_constant :Total
  end
end
