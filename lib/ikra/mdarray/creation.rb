# frozen_string_literal: true

module Ikra
  # Ways to make arrays.
  class MDArray
    class << self
      # @param elements numbers, true and false, or objects; or arrays of them, all of one length
      # @return [MDArray]
      def [](*elements, dtype: nil) = new(elements, dtype: dtype)

      # @return [MDArray] of zeros, or of false
      def zeros(*sizes, dtype: :f64) = new(*sizes.flatten, dtype: dtype)

      # @return [MDArray]
      def ones(*sizes, dtype: :f64) = full(*sizes, dtype == :bool ? true : 1, dtype: dtype)

      # @overload full(*sizes, value, dtype: nil)
      # @param value [Numeric, Boolean, Object] each element
      # @param dtype [Symbol, nil] nil: what the value is
      # @return [MDArray]
      # @raise [RangeError] for a value that such elements cannot hold
      def full(*sizes, value, dtype: nil)
        shape = __shape(sizes.flatten, most: MAX_ELEMENTS)
        dtype = dtype ? DType.check(dtype) : DType.of(value)
        value = DType.store(dtype, value)
        count = shape.reduce(1, :*)
        return __of(Array.new(count, value), :object, shape) if dtype == :object

        __of(Run.own(:full) { value }.values(count, dtype, shape, pieces: Rows::NUMBERED).first, dtype, shape)
      end

      # @overload arange(last)
      # @overload arange(first, last, step = 1)
      # @param last [Numeric] the end, which is excluded
      # @return [MDArray] numbers that are +step+ apart; Integers where all three are
      # @raise [ArgumentError] for a step of zero
      def arange(first, last = nil, step = 1, dtype: nil)
        first, last = 0, first if last.nil?
        [first, last, step].each { |value| raise TypeError, "#{value.inspect} is not a number" unless value.is_a?(Integer) || value.is_a?(Float) }
        raise ArgumentError, "step can't be 0" if step.zero?

        count = first.is_a?(Integer) && last.is_a?(Integer) && step.is_a?(Integer) ? -((first - last) / step) : ((last - first) / step.to_f).ceil
        count, = __shape([[count, 0].max], most: MAX_ELEMENTS)
        first = first.to_f if last.is_a?(Float) || step.is_a?(Float)
        [first, step].each { |value| DType.store(:i64, value) if value.is_a?(Integer) }
        dtype &&= DType.check(dtype)
        buffer, kind = Run.own(:arange) { |i| first + i * step }.values(count, dtype, [count], pieces: Rows::NUMBERED)
        __of(buffer, count.zero? ? dtype || DType.of(first) : kind, [count])
      end

      # @return [MDArray] +count+ Floats at equal distances, the first and the last among them
      # @raise [ArgumentError] for a negative number of them
      def linspace(first, last, count = 50, dtype: :f64)
        shape = __shape([count], most: MAX_ELEMENTS)
        first, last = Float(first), Float(last)
        return halves(first, last, shape, dtype) if first.finite? && last.finite? && !(last - first).finite?

        step = count > 1 ? (last - first) / (count - 1) : 0.0
        end_at = count - 1
        run = Run.own(:linspace) { |i| i == end_at && i > 0 ? last : first + i * step }
        __of(run.values(shape.first, DType.check(dtype), shape, pieces: Rows::NUMBERED).first, dtype, shape)
      end

      # Numbers from Ikra's random generator ({Ikra.srand}).
      #
      # @param within [Range, Integer, nil] as Kernel#rand takes it: Integers or Floats of a Range, Integers below a
      #   number; nil: Floats from 0 to 1
      # @return [MDArray]
      # @raise [ArgumentError] for a Range that has no numbers
      def rand(*sizes, within: nil, dtype: nil)
        shape = __shape(sizes.flatten, most: MAX_ELEMENTS)
        within = drawn_from(within)
        dtype = dtype ? DType.check(dtype) : within.nil? || (within.is_a?(Range) && within.begin.is_a?(Float)) ? :f64 : :i64
        block = within.nil? ? proc { ::Kernel.rand } : proc { ::Kernel.rand(within) }
        __of(Run.own(:rand, &block).values(shape.reduce(1, :*), dtype, shape).first, dtype, shape)
      end

      # Normally distributed numbers, by Box and Muller's method.
      #
      # @return [MDArray]
      def randn(*sizes, mean: 0.0, deviation: 1.0, dtype: :f64)
        shape = __shape(sizes.flatten, most: MAX_ELEMENTS)
        mean, deviation = Float(mean), Float(deviation)
        block = proc do
          radius = ::Math.sqrt(-2.0 * ::Math.log(1.0 - ::Kernel.rand))
          mean + deviation * radius * ::Math.cos(6.283185307179586 * ::Kernel.rand)
        end
        __of(Run.own(:randn, &block).values(shape.reduce(1, :*), DType.check(dtype), shape).first, dtype, shape)
      end

      # The elements of one array where a condition is true, and those of another where it is false.
      #
      # @param condition [MDArray] of booleans
      # @param one [MDArray, Numeric, Boolean]
      # @param other [MDArray, Numeric, Boolean]
      # @return [MDArray]
      def where(condition, one, other)
        raise TypeError, "the condition is not an MDArray of kind bool" unless condition.is_a?(MDArray) && condition.dtype == :bool

        condition.__send__(:choose, one, other)
      end

      # @return [MDArray] the arrays, joined along a dimension
      def concat(*arrays, axis: 0)
        arrays = arrays.map { |array| array.is_a?(MDArray) ? array : new(array) }
        raise ArgumentError, "no arrays" if arrays.empty?

        arrays.first.__send__(:joined, arrays, axis)
      end

      private

      # Numbers with a distance beyond the greatest Float: twice the numbers between their halves.
      def halves(first, last, shape, dtype)
        from, end_at = first / 2, shape.first - 1
        step = end_at.positive? ? (last / 2 - from) / end_at : 0.0
        run = Run.own(:linspace) { |i| i == end_at && i > 0 ? last : (from + i * step) * 2 }
        __of(run.values(shape.first, DType.check(dtype), shape, pieces: Rows::NUMBERED).first, dtype, shape)
      end

      # The range of random numbers, in the form that kernels take.
      def drawn_from(within)
        case within
        when nil then nil
        when Range
          raise ArgumentError, "within: #{within} has no end" if within.begin.nil? || within.end.nil?
          # Ruby's own error for such a range.
          raise ArgumentError, "within: #{within} has no numbers" if ::Kernel.rand(within).nil?
          return Range.new(within.begin.to_f, within.end.to_f, within.exclude_end?) if within.begin.is_a?(Float) || within.end.is_a?(Float)

          [within.begin, within.end].each { |value| DType.store(:i64, value) }
          within
        else
          number = DType.store(:i64, within)
          number.zero? ? nil : number
        end
      end
    end

    private

    # The elements of arrays within arrays, or of another array.
    def made_of(nested, dtype)
      if nested.is_a?(MDArray)
        other = dtype && dtype != nested.dtype ? nested.to(dtype) : nested.dup
        return __set(other.__storage, other.__layout)
      end
      Ikra.__measured(:new, nested) { take_list(nested, dtype) }
    end

    def take_list(nested, dtype)
      list, shape = Nested.flat(nested)
      dtype ||= list.empty? ? :f64 : Nested.kind(list, shape)
      list = list.dup if list.equal?(nested)
      __set(Storage.new(dtype == :object ? list : Nested.buffer(dtype, list, shape), dtype), Layout.packed(shape))
    end

    def joined(arrays, axis)
      axis = axis_of(axis)
      arrays.each do |array|
        next if array.ndim == ndim && array.shape.each_with_index.all? { |size, dimension| dimension == axis || size == shape[dimension] }

        raise ArgumentError, "shapes #{shape.inspect} and #{array.shape.inspect} do not fit"
      end
      dtype = Operators.common(:concat, arrays.map(&:dtype))
      sizes = shape.dup
      sizes[axis] = arrays.sum { |array| array.shape[axis] }
      parts = arrays.reject(&:empty?)
      return put_together(arrays, axis, dtype, sizes) if dtype == :object || parts.empty? || parts.size > MOST_JOINED

      parts = parts.map { |part| part.__send__(:as, dtype) }
      # They would be too much for one kernel.
      parts.each(&:__storage) if parts.sum { |part| part.__send__(:operators) } > Expression::MAX_OPERATORS
      begin
        outer, inner = shape.take(axis).reduce(1, :*), shape.drop(axis + 1).reduce(1, :*)
        at = Text.joined(parts.map { |part| part.__send__(:in_rows, outer, part.shape[axis] * inner) }, outer)
        MDArray.__of(Run.own(:concat) { |x| x }.values(sizes.reduce(:*), dtype, sizes, [[:computed, at]]).first, dtype, sizes)
      rescue DeviceMemoryError
        # One part after the other may fit.
        put_together(arrays, axis, dtype, sizes)
      end
    end

    # The elements in so many rows of a length, for {Text.joined}.
    def in_rows(rows, length)
      layout = @layout.reshape([rows, length]) if @storage
      Text::Part.new(length, layout, layout ? @storage.buffer : at)
    end

    # How many operators computing a pending expression takes.
    def operators
      pending = @pending
      pending && @storage.nil? ? pending.recount : 0
    end

    # The most arrays that one kernel joins.
    MOST_JOINED = 8
    private_constant :MOST_JOINED

    # Writes each array to its place in a new one.
    def put_together(arrays, axis, dtype, sizes)
      result = MDArray.zeros(*sizes, dtype: dtype)
      from = 0
      arrays.each do |array|
        count = array.shape[axis]
        result[*Array.new(axis, true), from...(from + count), *Array.new(ndim - axis - 1, true)] = array unless count.zero?
        from += count
      end
      result
    end

    # Arrays within arrays as a flat list.
    # @api private
    module Nested
      class << self
        # @return [Array(Array, Array<Integer>)] all elements, and the shape
        # @raise [ArgumentError] for a ragged one; the message has the index path of the first array of another length
        def flat(nested)
          list, shape = nested, [nested.size]
          while list.first.is_a?(Array)
            raise ArgumentError, "the array is more than #{Layout::MAX_DIMENSIONS} deep" if shape.size == Layout::MAX_DIMENSIONS

            size = list.first.size
            at = list.index { |row| !row.is_a?(Array) || row.size != size }
            ragged(list, shape, at, size) if at
            shape << size
            list = list.flatten(1)
          end
          at = list.index { |element| element.is_a?(Array) } unless Buffer.kind(list)
          mixed_depth(list, shape, at) if at
          [list, shape]
        end

        # The kind of a list's elements.
        #
        # @raise [ArgumentError] for several kinds; the message has the index path of the first element of another kind
        def kind(list, shape)
          kind = Buffer.kind(list)
          return kind if kind

          dtype = DType.of(list.first)
          at = list.index { |element| DType.of(element) != dtype }
          mixed(list, shape, at) if at
          dtype
        end

        # A buffer of the elements.
        #
        # @raise [RangeError, TypeError, FloatDomainError] for a value that such elements cannot hold; the message has
        #   the index path
        def buffer(dtype, list, shape)
          Buffer.from_list(dtype, list)
        rescue RangeError, TypeError
          Buffer.from_list(dtype, stored(list, shape, dtype))
        end

        private

        def path(shape, at) = Layout.packed(shape).indices(at).inspect

        def ragged(list, shape, at, size)
          found = list[at].is_a?(Array) ? "has #{list[at].size} element#{"s" if list[at].size != 1}" : "is #{DType.shown(list[at])}"
          raise ArgumentError, "the array is ragged: #{path(shape, at)} #{found}, where #{path(shape, 0)} has #{size}"
        end

        def mixed_depth(list, shape, at)
          raise ArgumentError, "the array is ragged: #{path(shape, at)} is an Array, where #{path(shape, 0)} is #{DType.shown(list.first)}"
        end

        def mixed(list, shape, at)
          raise ArgumentError, "the array is mixed: #{path(shape, at)} is #{DType.shown(list[at])}, where #{path(shape, 0)} is #{DType.shown(list.first)}; " \
                               "say what is meant with dtype:"
        end

        def stored(list, shape, dtype)
          at = 0
          list.map do |value|
            DType.store(dtype, value).tap { at += 1 }
          end
        rescue RangeError, TypeError => error
          raise error.class, "element #{path(shape, at)}: #{error.message}", error.backtrace
        end
      end
    end
    private_constant :Nested
  end
end
