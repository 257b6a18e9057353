# frozen_string_literal: true

module Ikra
  # One call of a parallel method: the sections that it runs, and what it makes of their results.
  #
  # A section runs the block within methods of the prelude (+ext/ikra-core/src/prelude/operations.rb+), which do the
  # work for one element: +:truth+ converts to true or false, +:fold+ combines the elements of a chunk. Steps that need
  # all elements are done here, by Ruby's own methods and by natives (+ext/ikra/src/section/collect.rs+). Elements of a
  # result are the very objects of the receiver.
  # @api private
  class Operation
    # The number of elements that {#preduce}, {#pscan}, {#pmin} and {#psort} process one after the other. The order of
    # all combinations depends only on this number.
    CHUNK = 256
    # The number of positions at which `check: :associative` tries a block.
    SAMPLES = 100
    # The limits of kernels (+ext/ikra-core/src/prelude/operations.rs+).
    MAX_LISTS = 8
    MAX_DIMENSIONS = 6
    MAX_NEIGHBOURS = 32
    # The classes of elements that tables group. Ruby's own methods group others.
    GROUPED = [Integer, Float, String, Symbol, TrueClass, FalseClass, NilClass].freeze

    class << self
      # Raises where values that were combined from either end differ. `yield` gives the three for an index.
      def check_associativity(name, tried)
        at = tried.index { |left, right| !alike?(left, right) } or return
        raise ArgumentError, "#{name} is not associative: of #{yield(at).map(&:inspect).join(", ")} " \
                             "it makes #{tried[at][0].inspect} from the left and #{tried[at][1].inspect} from the right"
      end

      # Objects that do not define == are not compared.
      def alike?(one, other)
        return (one - other).abs <= [one.abs, other.abs].max * 1e-9 if one.is_a?(Float) && other.is_a?(Float) && one.finite? && other.finite?
        return one.size == other.size && one.zip(other).all? { |x, y| alike?(x, y) } if one.is_a?(Array) && other.is_a?(Array)

        one == other || (one.is_a?(Float) && one.nan?) || one.method(:==).owner == BasicObject
      end

      # Runs an operation with a block. With +offset+ the block also gets an index, from there on. `yield` gives the
      # result after +break+.
      def call(base, name, options, block, *args, offset: nil, &left)
        Ikra.__check(options) unless options.empty?
        operation = new(base, name, options, block, args, offset)
        return operation.value(&left) unless Ikra.__measured?

        Ikra.__measured(name, name == :pnew ? args.reduce(:*) : base, block) { operation.value(&left) }
      end

      # The first +count+ elements in ascending order of their keys. Elements of equal keys keep their order. With
      # +last+ they come from the end of that order.
      def sorted(list, keys, count = list.size, last: false)
        Ikra.__sorted(list, keys, count, last) || begin
          keys = keys.to_list if keys.is_a?(Buffer)
          order = by_keys(keys)
          (last ? order.reverse : order).first(count).map { |index| list[index] }
        end
      end

      # Indices in the order of a block that compares two, in a stable sort.
      def stable(size)
        (0...size).sort do |i, j|
          order = yield(i, j)
          order == 0 ? i <=> j : order
        end
      end

      # Indices in the order of their keys, in a stable sort. Ruby sorts by keys faster than by a block that compares
      # them, but not stably: so equal keys are put in order afterwards.
      def by_keys(keys)
        order = (0...keys.size).sort_by { |index| keys[index] }
        from = 0
        1.upto(order.size) do |to|
          next if to < order.size && (keys[order[to - 1]] <=> keys[order[to]]) == 0

          order[from...to] = order[from...to].sort if to - from > 1
          from = to
        end
        order
      end

      # The block's comparison of two elements. Where they do not compare, Ruby raises its own error.
      def compare(one, other) = yield(one, other) || [one, other].sort { nil }

      # A flat list as rows of rows.
      def nested(values, sizes)
        return empty(sizes) if sizes.include?(0)

        sizes.drop(1).reverse.reduce(values) { |list, size| Array.new(list.size / size) { |row| list[row * size, size] } }
      end

      # The indices of the elements of arrays of these sizes: Integers, or arrays with an index for each size.
      def cells(sizes)
        count = sizes.reduce(:*)
        return 0...count if sizes.size == 1

        ::Enumerator.new(count) do |yielder|
          count.times { |at| yielder << sizes.drop(1).reverse.reduce([at]) { |(at, *within), size| [*at.divmod(size), *within] } }
        end
      end

      # A value as an Integer, converted as Ruby's own methods convert their arguments.
      def integer(value)
        return value if value.is_a?(Integer)
        raise TypeError, "no implicit conversion of #{value.nil? ? "nil" : value.class} into Integer" unless value.respond_to?(:to_int)

        value.to_int
      end

      private

      def empty(sizes) = Array.new(sizes.first) { empty(sizes.drop(1)) }
    end

    def initialize(base, name, options, block, args, offset)
      @base = base
      @name = name
      @options = options
      @block = block
      @args = args
      @offset = offset
    end

    # The result of the call. +break+ in the block ends it. Its value is the result, or what the method makes of it.
    def value
      left = true
      value = catch(self) { public_send(@name, *@args).tap { left = false } }
      left && block_given? ? yield(value) : value
    rescue CompileError => error
      Fallback.run(error, @options) { Plain.new(@base, @name, @block, @args, @offset).value }
    end

    def pmap = section(:map)

    def pmap!
      # Ruby's own error for a frozen Array.
      @base.replace(@base)
      values = section(:map) { |before| @base[0, before.size] = before }
      # Elements that another thread added meanwhile stay.
      @base.size == values.size ? @base.replace(values) : @base[0, values.size] = values
      @base
    end

    def peach(ticks) = section(:each, ticks: ticks)

    def pselect = chosen(:truth)

    def preject = chosen(:falsity)

    def ppartition
      list = snapshot
      numbers([:truth]) { |flags| [true, false].map { |wanted| Ikra.__chosen(list.to_a, flags, wanted) } }
    end

    def pfilter_map
      numbers([:kept, Hole]) { |values| values.is_a?(Buffer) ? values.to_list : Ikra.__compacted(values, Hole, nil).first }
    end

    def pflat_map = section(:map).flatten(1)

    def pcount = reduced(:count, [:truth]) { |flags| total(flags, :count) || flags.count(true) }

    def pall? = section(:find, [:falsity]).nil?

    def pany? = !section(:find, [:truth]).nil?

    def pnone? = section(:find, [:truth]).nil?

    def pone?
      first = nil
      second = section(:another, [:another, -1]) { |_, found| first = found }
      second.nil? && !first.nil?
    end

    def pfind(none = nil)
      list = snapshot
      index = section(:find, [:truth])
      return none&.call if index.nil?

      list.is_a?(Range) ? list.begin + index : list[index]
    end

    def pfind_index = section(:find, [:truth])

    # A sum with a Float as its start is compensated from there on.
    def psum(start = 0)
      return section(:map).sum(start) unless start.is_a?(Integer) || start.eql?(0.0)

      added = reduced(:sum) do |values|
        total(values, :sum) || (return (values.is_a?(Buffer) ? values.to_list : values).sum(start))
      end
      start + added
    end

    def pgroup_by
      list = snapshot
      return Ikra.__grouped_by_itself(list) || list.group_by(&@block) if itself?

      keyed(:__keys) { |keys, groups| Ikra.__grouped(list.to_a, keys, groups) }
    end

    def puniq
      list = snapshot
      return Ikra.__uniq(list) || list.uniq(&@block) if itself?

      keyed(:__firsts) { |keys, groups| Ikra.__distinct(list.to_a, keys, groups) }
    end

    def psort_by = sorted_by

    def pmin_by(count = nil) = count ? some(count) { sorted_by(count) } : extremes(false).first

    def pmax_by(count = nil) = count ? some(count) { sorted_by(count, last: true) } : extremes(true).first

    def pminmax_by = extremes(false, true)

    def pmin(count = nil) = count ? some(count) { psort.first(count) } : fold(snapshot, :least)

    def pmax(count = nil) = count ? some(count) { psort.reverse.first(count) } : fold(snapshot, :greatest)

    def pminmax
      list = snapshot
      [fold(list, :least), fold(list, :greatest)]
    end

    # Sorts each chunk, and then merges pairs of longer and longer ones.
    def psort
      list = snapshot.to_a
      order = section(:map, [:sorted, list, CHUNK], base: 0...chunks(list)).flatten(1)
      width = CHUNK
      while width < list.size
        order = section(:map, [:merged, list, order, width, CHUNK], base: 0...chunks(list)).flatten(1)
        width *= 2
      end
      Ikra.__permuted(list, order)
    end

    def preduce(start = (none = true))
      first = none ? [] : [start]
      list = none ? snapshot : [*first, *@base]
      try_associativity(list)
      added(first) || fold(list, :fold)
    end

    def pscan(start = (none = true))
      first = none ? [] : [start]
      list = none ? snapshot : [*first, *@base]
      try_associativity(list)
      values = scan(list)
      # For Integers the sum is the same already.
      values[-1] = added(first) || values.last if values.last.is_a?(Float)
      none ? values : values.drop(1)
    end

    def pcombine(*others)
      section(:map, [:"#{@offset ? "zip" : "combine"}_#{others.size}", *others])
    end

    # Calls the block for its effects, as +zip+ does.
    def pzip(*others)
      several = @block.parameters.size > 1 && !@block.lambda? && !@offset
      section(:each, [:"#{several ? "combine" : "zip"}_#{others.size}", *others])
      nil
    end

    def pnew(*sizes)
      cells = sizes.size == 1 ? [] : [[:"#{@offset ? "cell" : "cells"}_#{sizes.size}", *sizes.drop(1)]]
      Operation.nested(section(:map, *cells, base: 0...sizes.reduce(:*)), sizes)
    end

    def pstencil(offsets, fill)
      stencil = Stencil.new(@base, offsets)
      stencil.nested(section(:map, stencil.method_for(@block, fill, with_index: @offset), base: 0...stencil.list.size))
    end

    private

    # Runs the block within methods, each with its arguments. Gives results, or the index of the element that was found.
    def section(kind, *within, **more, &before)
      how, value = ended(kind, within, **more, &before)
      return value unless %i[find another].include?(kind)

      yield(nil, value.negative? ? nil : value) if how.nil? && kind == :another
      value if how == :found
    end

    # Runs a section. Gives how it ended, and its value. +break+ ends the operation, after the block got the results
    # before it.
    def ended(kind, within, base: @base, ticks: 1, **more)
      within << [:with_index, @offset] if @offset
      options = more.empty? ? @options : @options.merge(more)
      left = Ikra.__section(@name, kind, base, ticks, options, @block, within)
      return [nil, left] if left.is_a?(Buffer)

      how, value, before = left
      return [how, value] unless how == :left

      yield(before) if before && block_given?
      throw(self, value)
    end

    # The block's values: numbers, or true and false, in a {Buffer}, where the section left them. Other values are in an
    # Array. The memory of the buffer is given back afterwards at once, because the GC would wait.
    def numbers(*within)
      yield(values = section(:map, *within, __into: :numbers))
    ensure
      values.free if values.is_a?(Buffer)
    end

    # The block's values, as {#numbers} gives them, by which elements are grouped. Where the section groups them, so
    # that they need not become objects: each key once, or nil, and the groups.
    def keyed(wanted)
      how, value = ended(:map, [], __into: :numbers, wanted => true)
      how == :grouped ? yield(*value) : yield(value, nil)
    ensure
      value.free if value.is_a?(Buffer)
    end

    # The reduction of the block's values by the kernel that computes them (`Ikra.__reduce`). The block of this method
    # reduces them instead where they are not numbers of one kind, where there are none, or where the kernel cannot. It
    # gets them as {#numbers} gives them.
    def reduced(reduction, *within)
      how, value = ended(:map, within, __into: :numbers, __reduce: reduction)
      how == :reduced ? value : yield(value)
    ensure
      value.free if value.is_a?(Buffer)
    end

    # The reduction of numbers of one kind, where they are.
    def total(values, reduction)
      return unless values.is_a?(Buffer) && (reduction == :count) == (values.dtype == :bool)

      Ikra.__reduce(values, reduction, 0, values.size, nil)
    end

    # Whether all that the block does is give the element, so that no section needs to run. If this Fiber has other
    # sections, one runs all the same, because sections run in order.
    def itself?
      return false unless @base.is_a?(Array) && @offset.nil? && Sections.none?

      gives = Ikra.__gives_element?(@block)
      gives.nil? ? GROUPED.all? { |kind| kind.instance_method(:itself).then { |own| own.owner == ::Kernel && own.source_location.nil? } } : gives
    end

    # The elements as they are before the section, because the block may change the array.
    def snapshot = @base.is_a?(Range) ? @base : [].replace(@base)

    def chosen(wanted)
      list = snapshot
      numbers([wanted]) { |flags| Ikra.__chosen(list.to_a, flags, true) }
    end

    # The +count+ least or greatest elements. For 0 Ruby does not call the block.
    def some(count) = count.zero? ? [] : yield

    # The elements in the order of the block's values, or the first of them.
    def sorted_by(*count, last: false)
      list = snapshot
      numbers { |keys| Operation.sorted(list.to_a, keys, *count, last: last) }
    end

    # The elements with the least and the greatest (+true+) of the block's values. One kernel finds both.
    def extremes(*greatest)
      list = snapshot
      reduction = greatest.size == 2 ? :minmax : greatest.first ? :max : :min
      asked = ->(keys) { indices(keys, greatest, reduction).map { |index| at(list, index) } }
      places = reduced(reduction) { |keys| return asked.call(keys) }
      places = [places] if greatest.size == 1
      # Ruby compares NaN. Such a section changes nothing, so it may run again.
      places.first.last ? numbers(&asked) : places.map { |_, index, _| at(list, index) }
    end

    def indices(keys, greatest, reduction)
      found = greatest.map { |which| Ikra.__extreme(keys, which) }
      return found if found.all?

      # The first that Ruby finds.
      keys = keys.to_list if keys.is_a?(Buffer)
      found = (0...keys.size).public_send(:"#{reduction}_by") { |i| keys[i] }
      greatest.size == 1 ? [found] : found
    end

    def at(list, index)
      list.is_a?(Range) ? list.begin + index : list[index] if index
    end

    # Combines the elements of each chunk, then the results, until one is left.
    def fold(list, combine)
      while list.size > 1
        list = section(:map, [combine, list, CHUNK], base: 0...chunks(list))
      end
      # An empty Range has a beginning, but no element.
      list.first unless list.size.zero?
    end

    # The result of {#preduce} where the block adds numbers of one kind, and there are more than a chunk: their sum, by
    # one kernel. nil where the sum is a Float zero, of which there are two.
    def added(start)
      one = @base.is_a?(Range) ? @base.begin : @base.first
      return unless @base.size > CHUNK && Ikra.__sums?(@block, @options, [one, *start])

      sum = reduced(:sum, [:unchanged]) { |values| total(values, :sum) }
      start.sum(sum) unless sum.nil? || sum.eql?(0.0)
    rescue CompileError
      # Only the block can tell these apart.
    end

    # Combines some neighbours from either end. Raises where that makes a difference, except in the last digits of
    # Floats.
    def try_associativity(list)
      return unless @options.fetch(:check, Ikra.config.check).to_s == "associative" && list.size > 2

      step = [(list.size - 2) / SAMPLES, 1].max
      tried = section(:map, [:both_ways, list, step], base: 0...[(list.size - 2 + step - 1) / step, SAMPLES].min)
      Operation.check_associativity("the block of #{@name}", tried) do |at|
        Array.new(3) { |offset| list.is_a?(Range) ? list.begin + (at * step) + offset : list[(at * step) + offset] }
      end
    end

    def chunks(list) = (list.size + CHUNK - 1) / CHUNK

    def scan(list)
      return [] if list.size.zero?

      rows = section(:map, [:scan, list, CHUNK], base: 0...chunks(list))
      return rows.first if rows.size == 1

      before = scan(rows.map(&:last))
      within = rows.flatten(1)
      values = section(:map, [:continue, within, before, CHUNK], base: 0...within.size)
      # Then the last value is that of preduce, with the same order.
      before.each_with_index { |total, chunk| values[[(chunk + 1) * CHUNK, values.size].min - 1] = total }
      values
    end

  end
  private_constant :Operation
end
