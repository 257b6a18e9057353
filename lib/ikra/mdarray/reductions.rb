# frozen_string_literal: true

module Ikra
  # Reductions of all elements, or of those along a dimension (+axis:+, negative from the last). The result is a number
  # for the whole array, else an array with one dimension less.
  #
  # All elements of an array are reduced in one pass, in the order of docs/algorithms.md. A kernel that computes the
  # elements, because they are pending or a block gives them, reduces in the same order.
  #
  # Elements along a dimension, and elements that a block combines, are combined in chunks of 256, from the first to the
  # last. Then the results of the chunks are combined in the same way. So the result is the same on every backend.
  class MDArray
    # Combines elements with a block, which must be associative. For more than 256 numbers, a block that adds all of
    # them gives their {#sum}.
    #
    # @example
    #   numbers.inject(0.0) { |x, y| x + y }
    # @param start the value that the first element is combined with
    # @param axis [Integer, nil] nil: the last dimension
    # @yieldparam one
    # @yieldparam other
    # @return [Object, MDArray, nil] for an array of one dimension a value; nil where there are no elements and no start
    def inject(*start, axis: nil, **options, &block)
      start, block, operator = folder(start, block)
      MDArray.__parameters(block, 2, "it is given two values")
      axis = axis.nil? ? ndim - 1 : axis_of(axis)
      run = operator ? Run.own(:inject, options, &block) : Run.new(:inject, options, block)
      run.ending do
        next flat_list.inject(*start, &block) if dtype == :object && ndim == 1
        next objects_along(axis) { |list| list.inject(*start, &block) } if dtype == :object

        added(start, operator ? { **options, **Run::EXACT } : options, block) || folded(run, axis, start)
      end
    end
    alias reduce inject

    # @param start [Numeric] the value that is added to
    # @return [Integer, Float, MDArray] for all elements exact, or compensated as Array#sum is, in an order of its own.
    #   Along a dimension Floats are added in chunks.
    # @raise [TypeError] for elements that are no numbers
    # @raise [IntegerOverflow] for a sum along a dimension beyond 64 bits
    def sum(start = 0, axis: nil, **options, &block)
      return summed(start, axis, options, block) if block
      return start + sum(axis: axis, **options) unless start.is_a?(Integer) && start.zero?

      numbers_for(:sum)
      return reduced(:sum, options) { DType.integer?(dtype) ? 0 : 0.0 } if axis.nil?

      along_axis(axis, options, DType.integer?(dtype) ? 0 : 0.0) { |run| run.with { |x, y| x + y } }
    end

    # @param count [Integer] gives the +count+ least elements, computed on the host, as with a block, which compares two
    #   elements
    # @return [Object, nil, MDArray, Array] nil where there are no elements
    # @raise [ArgumentError] for NaN
    def min(*count, axis: nil, **options, &block)
      Ikra.__check(options) unless options.empty?
      return of_all(:min, block ? "block" : "count", axis).min(*count, &block) if block || !count.empty?
      return flat_list.min if dtype == :object && axis.nil?
      return objects_along(axis) { |list| list.min } if dtype == :object

      numbers_for(:min)
      return extreme(:min, options)&.first if axis.nil?

      along_axis(axis, options, nil, keeps: true) { |run| run.with { |x, y| y < x || y != y ? y : x } }
    end

    # @param count (see #min)
    # @return (see #min)
    def max(*count, axis: nil, **options, &block)
      Ikra.__check(options) unless options.empty?
      return of_all(:max, block ? "block" : "count", axis).max(*count, &block) if block || !count.empty?
      return flat_list.max if dtype == :object && axis.nil?
      return objects_along(axis) { |list| list.max } if dtype == :object

      numbers_for(:max)
      return extreme(:max, options)&.first if axis.nil?

      along_axis(axis, options, nil, keeps: true) { |run| run.with { |x, y| y > x || y != y ? y : x } }
    end

    # @return [Array] the least and the greatest
    def minmax(axis: nil, **options, &block)
      Ikra.__check(options) unless options.empty?
      return of_all(:minmax, "block", axis).minmax(&block) if block
      return flat_list.minmax if dtype == :object && axis.nil?
      return [min(axis: axis, **options), max(axis: axis, **options)] unless axis.nil?

      numbers_for(:minmax)
      found = reduced(:minmax, options) { return [nil, nil] }
      found.map { |place| compared(place).first }
    end

    # @return [Float, MDArray] NaN where there are no elements
    def mean(axis: nil, **options)
      numbers_for(:mean)
      count = axis.nil? ? size : shape[axis_of(axis)]
      sum(axis: axis, **options).fdiv(count)
    rescue IntegerOverflow
      raise if axis.nil? || dtype != :i64

      wide_mean(axis, options)
    end

    # The mean of the squares of the distances from the mean.
    #
    # @return [Float, MDArray]
    def variance(axis: nil, **options)
      centre = mean(axis: axis, **options)
      centre = centre.reshape(*shape.each_with_index.map { |size, dimension| dimension == axis_of(axis) ? 1 : size }) if centre.is_a?(MDArray)
      distances = self - centre
      (distances * distances).mean(axis: axis, **options)
    end

    # @return [Float, MDArray] the standard deviation, of all elements
    def stddev(axis: nil, **options)
      variance = variance(axis: axis, **options)
      variance.is_a?(MDArray) ? variance.sqrt : ::Math.sqrt(variance)
    end

    # The index of the first of the least elements.
    #
    # @return [Integer, nil, MDArray] without +axis:+ the number of the element, row after row
    def argmin(axis: nil, **options)
      numbers_for(:argmin)
      return extreme(:min, options)&.at(1) if axis.nil?

      extreme_at(:argmin, axis, options) { |run, at| run.with { |i, j| at.call(j) < at.call(i) || at.call(j) != at.call(j) ? j : i } }
    end

    # The index of the first of the greatest elements.
    #
    # @return (see #argmin)
    def argmax(axis: nil, **options)
      numbers_for(:argmax)
      return extreme(:max, options)&.at(1) if axis.nil?

      extreme_at(:argmax, axis, options) { |run, at| run.with { |i, j| at.call(j) > at.call(i) || at.call(j) != at.call(j) ? j : i } }
    end

    # Whether a block is true for any element; without a block, whether any element is true. Numbers are true, as in
    # Ruby.
    #
    # @return [Boolean, MDArray]
    def any?(*pattern, axis: nil, **options, &block)
      Ikra.__check(options) unless options.empty?
      return of_all(:any?, "pattern", axis).any?(*pattern) unless pattern.empty?
      return truths(:any?, options, block) { |flags| flags.__send__(:fold_truths, axis, false) { |x, y| x || y } } unless axis.nil?

      found(:any?, true, options, block) { |index| !index.nil? }
    end

    # Whether a block is true for every element.
    #
    # @return [Boolean, MDArray]
    def all?(*pattern, axis: nil, **options, &block)
      Ikra.__check(options) unless options.empty?
      return of_all(:all?, "pattern", axis).all?(*pattern) unless pattern.empty?
      return truths(:all?, options, block) { |flags| flags.__send__(:fold_truths, axis, true) { |x, y| x && y } } unless axis.nil?

      found(:all?, false, options, block, &:nil?)
    end

    # Whether a block is true for no element.
    #
    # @return [Boolean, MDArray]
    def none?(*pattern, axis: nil, **options, &block)
      Ikra.__check(options) unless options.empty?
      return of_all(:none?, "pattern", axis).none?(*pattern) unless pattern.empty?

      return found(:none?, true, options, block, &:nil?) if axis.nil?

      truths(:none?, options, block) do |flags|
        found = flags.__send__(:fold_truths, axis, false) { |x, y| x || y }
        found.is_a?(MDArray) ? ~found : !found
      end
    end

    # Whether an element equals an item.
    #
    # @return [Boolean]
    def include?(item)
      return super unless DType.number?(dtype) && (item.is_a?(Integer) || item.is_a?(Float)) && !empty?

      eq(item).any?(&:itself)
    end
    alias member? include?

    # The number of elements for which a block is true, or that equal an item. Without either, the number of elements.
    #
    # @return [Integer, MDArray]
    def count(*item, axis: nil, **options, &block)
      raise ArgumentError, "wrong number of arguments (given #{item.size}, expected 0..1)" if item.size > 1

      Ikra.__check(options) unless options.empty?
      return axis.nil? ? flat_list.count(item.first) : beside_item(item.first).count(axis: axis, **options, &:itself) unless item.empty? || comparable_with?(item.first)
      return eq(item.first).count(axis: axis, **options, &:itself) unless item.empty?
      return counted(axis) unless block
      return truths(:count, options, block) { |flags| flags.to(:i64).sum(axis: axis, **options) } unless axis.nil? && dtype != :object
      return 0 if empty?

      MDArray.__parameters(block, 1, "it is given one element")
      over(:count, options, block) { |run, within| run.reduction(size, :count, [:as_bool], *within, pieces: self) }
    end

    # All intermediate values of {#inject}. Sums and products by +:++ and +:*+ are those of {#cumsum} and {#cumprod}.
    #
    # @param axis [Integer, nil] nil: the last dimension
    # @yieldparam one
    # @yieldparam other
    # @return [MDArray] of the same shape
    def scan(*operator, axis: nil, **options, &block)
      start, block, operator = folder(operator, block)
      raise ArgumentError, "scan takes an operator or a block" unless start.empty?

      MDArray.__parameters(block, 2, "it is given two values")
      return objects_running(axis.nil? ? ndim - 1 : axis_of(axis), block) if dtype == :object

      operator ? running_operator(:scan, operator, axis, options) : running(Run.new(:scan, options, block), axis)
    end

    # In an array of one dimension, sums of Floats are compensated as in {#sum}, in an order of their own. They begin
    # with 0.0, as it does, so that -0.0 alone gives 0.0. Along a dimension of several they are added in chunks, and
    # begin with the first element.
    #
    # @return [MDArray] sums of all elements up to each
    # @raise [IntegerOverflow] for a sum beyond 64 bits
    def cumsum(axis: nil, **options) = running_operator(:cumsum, :+, axis, options)

    # @return [MDArray] products of all elements up to each
    # @raise [IntegerOverflow] for a product beyond 64 bits
    def cumprod(axis: nil, **options) = running_operator(:cumprod, :*, axis, options)

    # @return [MDArray] the least of all elements up to each
    # @raise [ArgumentError] for NaN
    def cummin(axis: nil, **options) = running_extreme(:min, Run.own(:cummin, options) { |x, y| y < x || y != y ? y : x }, axis)

    # @return [MDArray] the greatest of all elements up to each
    # @raise [ArgumentError] for NaN
    def cummax(axis: nil, **options) = running_extreme(:max, Run.own(:cummax, options) { |x, y| y > x || y != y ? y : x }, axis)

    # The elements in ascending order, or in the order of a block, which compares two as +<=>+ does.
    #
    # @param axis [Integer, nil] nil: the last dimension
    # @param descending [Boolean] whether the order is reversed
    # @return [MDArray] of the same shape
    # @raise [ArgumentError] for NaN
    def sort(axis: nil, descending: false, **options, &block)
      raise ArgumentError, "descending: is for sorts without a block" if descending && block

      Ikra.__check(options) unless options.empty?
      axis = axis.nil? ? ndim - 1 : axis_of(axis)
      return dup if empty?

      order = [*(0...ndim).to_a - [axis], axis]
      rows = axis == ndim - 1 ? self : transpose(*order)
      run = Run.new(:sort, options, block)
      run.ending do
        elements = Ikra.__measured(:sort, self, block) do
          block || !DType.number?(dtype) ? rows.__send__(:sorted_on_host, descending, options, block, run) : rows.__send__(:sorted, descending, options)
        end
        sorted = MDArray.__of(elements, dtype, rows.shape)
        axis == ndim - 1 ? sorted : sorted.transpose(*(0...ndim).map { |dimension| order.index(dimension) })
      end
    end

    private

    # The mean along a dimension of Integers whose sum exceeds 64 bits. The sums of their halves do not.
    def wide_mean(axis, options)
      high, low = [self >> 32, self & 0xffff_ffff].map { |half| half.sum(axis: axis, **options) }
      count = shape[axis_of(axis)]
      return ((high << 32) + low).fdiv(count) unless high.is_a?(MDArray)

      means = high.to_flat_a.zip(low.to_flat_a).map { |upper, lower| ((upper << 32) + lower).fdiv(count) }
      MDArray.__of(Buffer.from_list(:f64, means), :f64, high.shape)
    end

    # A dimension by its number.
    def axis_of(axis)
      number = Operation.integer(axis)
      number += ndim if number.negative?
      raise ArgumentError, "axis #{axis} for #{ndim} dimension#{"s" if ndim > 1}" if number.negative? || number >= ndim

      number
    end

    # Lets the block work on all elements on the host, where there is no +axis:+.
    def of_all(name, given, axis)
      raise ArgumentError, "#{name} along a dimension takes no #{given}" unless axis.nil?

      flat_list
    end

    # The numbers of elements around, along, and within a dimension.
    def around_axis(axis) = [shape.take(axis).reduce(1, :*), shape[axis], shape.drop(axis + 1).reduce(1, :*)]

    def numbers_for(name)
      raise TypeError, "#{name} is for numbers, not for elements of kind object" if dtype == :object
      raise TypeError, "#{name} is for numbers, not for elements of kind bool: to(:i64) makes 1 of true" if dtype == :bool && name != :inject && name != :scan
    end

    # The start and the block of {#inject}, and its operator, if it has one instead of a block.
    def folder(start, block)
      unless block
        raise LocalJumpError, "no block given" if start.empty?

        *start, operator = start
        raise TypeError, "#{operator.inspect} is not a symbol nor a string" unless operator.is_a?(Symbol) || operator.is_a?(String)

        operator = operator.to_sym
        block = operator.to_proc
      end
      raise ArgumentError, "wrong number of arguments (given #{start.size}, expected 0..1)" if start.size > 1

      [start, block, operator]
    end

    # The result of {#inject} where the block adds all elements, and they are more than a chunk: their sum, in one pass.
    # nil where the sum is a Float zero, of which there are two.
    def added(start, options, block)
      return unless ndim == 1 && size > Run::CHUNK && DType.number?(dtype) && Ikra.__sums?(block, options, start)

      sum = reduced(:sum, options) { return }
      start.sum(sum) unless sum.eql?(0.0)
    end

    # One value for an array of one dimension; else an array. The start comes before all combined elements.
    def folded(run, axis, start)
      outer, length, inner = around_axis(axis)
      if (outer * length * inner).zero?
        return start.first if ndim == 1

        raise ArgumentError, "no elements along dimension #{axis}, and no start" if length.zero? && start.empty?
      end
      rest = shape.dup.tap { |sizes| sizes.delete_at(axis) }
      return MDArray.full(*rest, start.first) if length.zero?
      return MDArray.zeros(*rest, dtype: dtype) if (outer * inner).zero?

      buffer, kind = combined(run, outer, length, inner)
      begun(run, buffer, kind, rest, start)
    end

    def begun(run, buffer, kind, rest, start)
      return rest.empty? ? buffer[0] : MDArray.__of(buffer, kind, rest) if start.empty?

      within = [:begun, Text.element(buffer, kind), start.first]
      return run.objects(1, within).first if rest.empty?

      buffer, kind = run.values(buffer.size, nil, rest, [within])
      MDArray.__of(buffer, kind, rest)
    end

    # The {Run#fold} of the elements. Where the device's memory is too small, chunks of parts of the array are combined
    # first, then their results.
    def combined(run, outer, length, inner, kind = nil)
      run.fold(at, outer, length, inner, kind)
    rescue DeviceMemoryError => error
      begin
        chunks = Tiles.along(self, [outer, length, inner]) do |part|
          run.fold_chunks(part.__send__(:at), *part.shape, (kind if length <= Run::CHUNK), part.shape, part: true).first
        end
      rescue DeviceMemoryError, Tiles::Refused, Located
        # The error of the whole. The error of a part may not be the first.
        raise error
      end
      return [chunks.__storage.buffer, chunks.dtype] if chunks.shape[1] == 1

      chunks.__send__(:combined, run, *chunks.shape, kind)
    end

    # A reduction of numbers by one of Ikra's own blocks.
    #
    # @param keeps [Boolean] whether the result is of the elements' kind, which may be narrower than that of the
    #   computation
    def along_axis(axis, options, none, keeps: false)
      axis = axis_of(axis)
      run = yield Run.new(:reduce, options, nil)
      outer, length, inner = around_axis(axis)
      rest = shape.dup.tap { |sizes| sizes.delete_at(axis) }
      raise ArgumentError, "no elements along dimension #{axis}" if length.zero? && none.nil?
      return rest.empty? ? none : MDArray.full(*rest, none) if length.zero?

      kind = keeps || dtype == :f32 ? dtype : nil
      return MDArray.zeros(*rest, dtype: kind || (none.is_a?(Integer) ? :i64 : :f64)) if (outer * inner).zero?

      buffer, kind = combined(run, outer, length, inner, kind)
      comparable(rest.empty? ? buffer[0] : MDArray.__of(buffer, kind, rest), length, keeps)
    end

    # The reduction of all elements, in the order of docs/algorithms.md; the block's value where there are none.
    # Existing elements are reduced where they are. Other elements are reduced by the kernel that computes them, and
    # those of a view by the kernel that reads them.
    def reduced(operation, options)
      Ikra.__check(options) unless options.empty?
      return yield if empty?

      node = unseen
      return Run.reduction(node, operation, options) if node

      elements = storage
      return Ikra.__reduce(elements.buffer, operation, @layout.offset, size, options) if @layout.in_order?

      Run.reduction(Expression::Operation.new(:to, [__operand], dtype, shape), operation, options).tap { elements.release(elements.buffer) }
    end

    # The pending expression, at its first reduction, which does not store its elements.
    def unseen
      pending = @pending
      return unless pending && @storage.nil? && !pending.seen && pending.storage.nil?

      pending.seen = true
      pending
    end

    def elements_at_first = storage.buffer[@layout.offset]

    # The scan of all elements where they are, in the order of docs/algorithms.md. nil where it meets a value that it
    # cannot hold or compare.
    def scanned(operation, options)
      elements = storage
      return dup.__send__(:scanned, operation, options) unless @layout.in_order?

      buffer = Ikra.__scan(elements.buffer, operation, @layout.offset, size, options)
      MDArray.__of(buffer, buffer.dtype, shape) if buffer
    end

    # All intermediate values, by an operator that has a name.
    def running_operator(name, operator, axis, options)
      running(Run.own(name, options, &operator), axis, (Ikra.__scan_of(operator) if DType.number?(dtype)))
    end

    def running_extreme(operation, run, axis)
      found = running(run, axis, operation, compared: true)
      found.dtype == dtype ? found : found.to(dtype)
    end

    # All intermediate values: by the core's scan over all elements, where there is one; else by the run's block.
    #
    # @param compared [Boolean] whether the block compares, and lets NaN through
    def running(run, axis, operation = nil, compared: false)
      numbers_for(run.name)
      outer, length, inner = around_axis(axis.nil? ? ndim - 1 : axis_of(axis))
      return dup if empty?

      found = scanned(operation, run.options) if operation && outer * inner == 1
      return found if found

      run.ending do
        buffer, kind = by_rows([outer, length, inner]) { |array, sizes, part| run.scan(array.__send__(:at), *sizes, part: part) }
        comparable(MDArray.__of(buffer, kind, shape), length, compared)
      end
    end

    # The elements of each row (along the last dimension), sorted where they are.
    def sorted(descending, options)
      elements = storage
      return dup.__send__(:sorted, descending, options) unless @layout.in_order?

      extreme(:max, options) if DType.float?(dtype) && shape.last > 1
      Ikra.__sort(elements.buffer, @layout.offset, size, shape.last, descending, options)
    end

    # @param run the run that +break+ in the block ends
    def sorted_on_host(descending, options, block, run)
      lists = Operation.nested(flat_list, [size / shape.last, shape.last]).flat_map do |list|
        next Operation.new(list, :psort, options, block, [], nil).value { |left| throw(run, left) } if block

        sorted = list.psort(**options)
        descending ? sorted.reverse : sorted
      end
      dtype == :object ? lists : Buffer.from_list(dtype, lists)
    end

    # The least or the greatest element, and its index.
    def extreme(operation, options) = compared(reduced(operation, options) { return })

    def compared(found)
      return found unless found.last
      # A single element is compared with nothing.
      return [elements_at_first, 0] if size == 1

      raise ArgumentError, "comparison of Float with Float failed: there is NaN among the elements"
    end

    # Raises for NaN, which Ruby cannot compare. The NaN stays in the array.
    def comparable(found, length, compared = true)
      return found unless compared && length > 1 && DType.float?(dtype)
      return found unless found.is_a?(MDArray) ? found.nan?.any?(&:itself) : found.nan?

      raise ArgumentError, "comparison of Float with Float failed: there is NaN among the elements"
    end

    def extreme_at(name, axis, options, &compare)
      sizes = around_axis(axis_of(axis))
      raise ArgumentError, "no elements along dimension #{axis}" if sizes[1].zero?

      rest = shape.dup.tap { |counts| counts.delete_at(axis_of(axis)) }
      buffer, kind = by_rows(sizes) { |array, counts| array.__send__(:extremes_along, name, counts, options, compare) }
      rest.empty? ? buffer[0] : MDArray.__of(buffer, kind, rest)
    end

    # The indices, along a dimension, of the least or greatest elements.
    def extremes_along(name, sizes, options, compare)
      outer, length, inner = sizes
      at = self.at
      places, = compare.call(Run.new(name, options, nil), at).fold(Text.itself, outer, length, inner)
      element = Text.element(places, :i64)
      if DType.float?(dtype)
        found, kind = Run.own(name) { |i| at.call(element.call(i)) }.values(outer * inner, nil, [outer * inner])
        comparable(MDArray.__of(found, kind, [outer * inner]), length)
      end
      return [places, :i64] if outer * inner == 1

      Run.own(name) { |i| element.call(i) / inner % length }.values(outer * inner, :i64, [outer, inner])
    end

    # The results of the rows along a dimension, each by itself, as a buffer and its kind. All rows are done at once.
    # Where the device's memory is too small, those of parts of the array are.
    #
    # @param sizes [Array<Integer>] around, along, and within the dimension
    # @yieldparam array
    # @yieldparam sizes
    # @yieldparam part [Boolean]
    def by_rows(sizes)
      yield self, sizes, false
    rescue DeviceMemoryError => error
      begin
        Tiles.rows(self, sizes) { |part| yield(part, part.shape, true).first }
      rescue DeviceMemoryError, Tiles::Refused, Located
        # The error of the whole. The error of a part may not be the first.
        raise error
      end
    end

    # The sum of the block's values.
    def summed(start, axis, options, block)
      return mapped(:sum, options, block) { |values| values.sum(start, axis: axis, **options) } unless axis.nil? && dtype != :object && !empty?

      MDArray.__parameters(block, 1, "it is given one element")
      over(:sum, options, block) do |run, within|
        total = run.reduction(size, :sum, *within, pieces: self)
        start.is_a?(Integer) && start.zero? ? total : start + total
      end
    end

    # Whether the elements' kind permits that an item is one of them.
    def comparable_with?(item) = DType.number?(dtype) ? item.is_a?(Integer) || item.is_a?(Float) : dtype == :bool && [true, false].include?(item)

    # Which elements equal an item, by Ruby's own comparison.
    def beside_item(item) = MDArray.__of(Buffer.from_list(:bool, flat_list.map { |element| element == item ? true : false }), :bool, shape)

    # The block's value for the objects along a dimension, on the host.
    def objects_along(axis)
      axis = axis_of(axis)
      rest = shape.dup.tap { |sizes| sizes.delete_at(axis) }
      MDArray.__of(lists_along(axis).map { |list| yield list }, :object, rest)
    end

    def objects_running(axis, block)
      lists = lists_along(axis).map do |list|
        memo = nil
        list.each_with_index.map { |element, number| memo = number.zero? ? element : block.call(memo, element) }
      end
      order = (0...ndim).to_a - [axis] << axis
      rows = MDArray.__of(lists.flatten(1), :object, shape.values_at(*order))
      axis == ndim - 1 ? rows : rows.transpose(*(0...ndim).map { |dimension| order.index(dimension) })
    end

    # The elements along a dimension, as a list for each place in the other dimensions.
    def lists_along(axis)
      rows = transpose(*(0...ndim).to_a - [axis], axis).__send__(:flat_list)
      Array.new(shape.reduce(1, :*) / [shape[axis], 1].max) { |row| rows[row * shape[axis], shape[axis]] }
    end

    # Applies a method to the array of a block's values. +break+ in the block ends both.
    def mapped(name, options, block, dtype = nil)
      MDArray.__parameters(block, 1, "it is given one element")
      over(name, options, block) { |run, within| yield made(run, dtype, within, shape, pieces: (self unless self.dtype == :object)) }
    end

    # The same for the truth of a block's values, or of the elements.
    def truths(name, options, block, &use) = mapped(name, options, block || proc { |x| x }, :bool, &use)

    # The number of elements, along a dimension if one is given.
    def counted(axis)
      return size if axis.nil?

      rest = shape.dup.tap { |sizes| sizes.delete_at(axis_of(axis)) }
      rest.empty? ? size : MDArray.full(*rest, shape[axis_of(axis)])
    end

    # @param none the value where there are no elements
    def fold_truths(axis, none, &block)
      outer, length, inner = around_axis(axis_of(axis))
      rest = shape.dup.tap { |sizes| sizes.delete_at(axis_of(axis)) }
      return rest.empty? ? none : MDArray.full(*rest, none) if length.zero?
      return MDArray.zeros(*rest, dtype: :bool) if rest.include?(0)

      buffer, kind = combined(Run.own(:any?, &block), outer, length, inner)
      rest.empty? ? buffer[0] : MDArray.__of(buffer, kind, rest)
    end

    # Uses the number of the first element for which a block is true, or false. nil: there is none.
    def found(name, wanted, options, block)
      block ||= proc { |x| x }
      MDArray.__parameters(block, 1, "it is given one element")
      over(name, options, block) { |run, within| yield run.find(size, wanted, *within, base: base, pieces: (self unless dtype == :object)) }
    end
  end
end
