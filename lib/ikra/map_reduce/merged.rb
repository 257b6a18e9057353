# frozen_string_literal: true

module Ikra
  # {Reducing} of a chain that is read in slabs: the pairs of each slab are grouped, and the groups of all slabs merged.
  #
  # The result is that of all pairs at once. Sums are merged before they are rounded, or found too large. Other values
  # are combined from left to right, so a group's value is combined with the group's values of the next slab. +reduce+
  # runs once for each key, when all slabs are done.
  # @api private
  class MergedReducing < Reducing
    # The result (see Reducing#value).
    def value
      super
    rescue NeedsAll
      whole = Reducing.new(@base.whole, @combine, @reduce, @order, { engine: @engine, **@options }, @block)
      whole.value.tap { @left = whole.left? }
    end

    private

    def computed
      @keys, @values = [], []
      # The number of each key.
      @numbers = {}
      # What the values of `:+` are: numbers, which are added exactly, or others. nil: not known yet.
      @adds = nil
      @base.each_chain(@block) { |chain, before| merge(chain, before) }
      return @keys.zip(@values) unless @combine || @reduce
      return {} if @keys.empty?

      @values = totals if @adds == :exactly
      return Ikra.__paired(@keys, @values) unless @reduce

      values, starts = @combine ? Reducing.single(@values) : side_by_side(@values)
      Ikra.__paired(@keys, section(@reduce, 0...@keys.size, [:reduction, @keys, values, starts]))
    end

    def merge(chain, before)
      keys, values, starts, combined = Lazy::Streamed.placed(before) { Ikra.__measured(:map_reduce, chain, @block) { emitted(chain, @combine || @reduce) } }
      return if keys.nil? || keys.size.zero?
      return append(Reducing.list(keys), Reducing.list(values)) unless @combine || @reduce

      keys, values, starts = Ikra.__by_hash(keys, values) unless starts || combined
      numbers = keys.map { |key| @numbers[key] }
      merge_groups(numbers, values, starts, combined)
      keys.zip(numbers) do |key, number|
        # A NaN finds no number, and gets one of its own.
        next if number

        @numbers[key] = @keys.size
        @keys << key
      end
    end

    def append(keys, values)
      @keys.concat(keys)
      @values.concat(values)
    end

    # Adds the values of groups to those that have these numbers. Where a number is nil, the group is new.
    def merge_groups(numbers, values, starts, combined)
      return listed(numbers, values, starts) unless @combine
      return summed(numbers, values, starts, combined) if @combine == :+ && @adds != :otherwise
      return folded(numbers, values, starts) unless combined

      put(numbers, values) { |one, other| together(one, other) }
    end

    # What an operator makes of the values of two slabs. If it raises, values are compared one by one.
    def together(one, other)
      %i[min max].include?(@combine) ? [one, other].public_send(@combine) : one.public_send(@combine, other)
    rescue StandardError
      raise unless @base.again?

      raise NeedsAll
    end

    # The values of groups, for `reduce`.
    def listed(numbers, values, starts)
      values = Reducing.list(values)
      lists = Reducing.list(starts).each_cons(2).map { |from, to| values[from, to - from] }
      put(numbers, lists) { |one, other| one.concat(other) }
    end

    # Sums that are not rounded: Integers of any size, Floats, and arrays of Floats whose sum they are.
    def summed(numbers, values, starts, combined)
      sums = combined ? values : (Ikra.__group_sums(values, starts, true) if Ikra.__own?(:+))
      if sums.nil?
        # With all pairs at once, sums would not be exact in any group.
        raise NeedsAll if @adds

        @adds = :otherwise
        return folded(numbers, values, starts)
      end
      @adds = :exactly
      put(numbers, sums) { |one, other| one.is_a?(Integer) && other.is_a?(Integer) ? one + other : add(one, other) }
    end

    # The most Floats of a sum that is not rounded.
    TERMS = 64
    # Digits of Integers that are Floats.
    DIGIT = 1 << 32
    private_constant :TERMS, :DIGIT

    def add(one, other)
      terms = floats(one).concat(floats(other))
      terms.size < TERMS ? terms : floats(Ikra.__group_sums(terms, Buffer.from_list(:i64, [0, terms.size]), true).first)
    end

    # Floats whose sum is this one, in a list that may be changed.
    def floats(sum)
      return Array(sum) unless sum.is_a?(Integer)
      return [0.0] if sum.zero?

      sum.abs.digits(DIGIT).each_with_index.map { |digit, place| Math.ldexp(sum.negative? ? -digit : digit, 32 * place) }
    end

    # The sums, rounded.
    def totals
      exact = @values.grep_v(Integer)
      limits = -(1 << 63)...(1 << 63)
      raise IntegerOverflow, "the sum of a group is an Integer beyond 64 bits" unless @values.all? { |sum| !sum.is_a?(Integer) || limits.cover?(sum) }

      terms, starts = side_by_side(exact.map { |sum| Array(sum) })
      rounded = Ikra.__group_sums(terms, starts, false)
      @values.map { |sum| sum.is_a?(Integer) ? sum : rounded.shift }
    end

    # Combines the values of groups, each with the group's value so far in front.
    def folded(numbers, values, starts)
      lists = Reducing.list(starts).each_cons(2).zip(numbers).map do |(from, to), number|
        list = values.is_a?(Buffer) ? values.to_list(from, to - from) : values[from, to - from]
        number ? list.unshift(@values[number]) : list
      end
      put(numbers, one_by_one(*side_by_side(lists))) { |_one, both| both }
    rescue StandardError => e
      # The place that it tells is that of a group.
      new = @keys.size - 1
      places = numbers.map { |number| number || (new += 1) }
      Lazy::Streamed.move(e) { |index| places[index] }
      raise
    end

    def put(numbers, values)
      values = Reducing.list(values)
      numbers.each_with_index do |number, at|
        number ? @values[number] = yield(@values[number], values[at]) : @values << values[at]
      end
    end

    # Lists as one, and where each begins.
    def side_by_side(lists)
      at = 0
      starts = lists.map { |list| (at += list.size) - list.size }
      [lists.flatten(1), Buffer.from_list(:i64, starts << at)]
    end

    def form(grouped) = { **super, __slab: true }

    # Tables keep sums that are not rounded.
    def tabled
      return {} if @adds == :otherwise

      form = super
      form[:__combine] == :sum ? { **form, __combine: :total } : form
    end
  end
  private_constant :MergedReducing
end
