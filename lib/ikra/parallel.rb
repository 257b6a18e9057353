# frozen_string_literal: true

module Ikra
  # The parallel methods of Array and Range. Each means what the method of Enumerable or Array without the +p+ means.
  # The block runs for every element, for many at the same time, and the result is that of sequential Ruby. If it raises
  # for any element, nothing is changed. An element that Ruby would not have reached neither raises nor changes
  # anything.
  #
  # All take the options of {Config} as keywords. Ranges are of Integers, and have an end. Without a block, methods that
  # give an Enumerator in Ruby give one whose +with_index+ is parallel, too. Calls that need no block are Ruby's own
  # methods.
  module Parallel
    # What +map+ gives.
    #
    # @example
    #   scale = 2.5
    #   [1, 2, 3].pmap { |x| x * scale } # => [2.5, 5.0, 7.5], 1 kernel
    # @yieldparam element
    # @return [Array] the block's value for each element; without a block an Enumerator
    # @raise [CompileError] for a block that Ikra cannot run
    def pmap(**options, &block)
      return ::Ikra.__enumerator(self, :pmap, [], options) unless block

      begin
        ::Ikra.__section(:pmap, :map, self, 1, options, block, nil)
      rescue ::Ikra::CompileError => error
        ::Ikra.__plainly(error, self, :pmap, options, block)
      end
    end

    # Does what +ticks.times { each { … } }+ does: every element finishes a tick before any begins the next. Changes
    # that the block makes to objects, arrays and captured variables are there afterwards.
    #
    # @example
    #   actors.peach(1000) { |actor| actor.move(weather) } # => actors, 1 kernel
    # @param ticks [Integer] how often the block runs for each element
    # @yieldparam element
    # @return [Array, Range] the receiver; without a block an Enumerator
    # @raise [CompileError] for a block that Ikra cannot run
    def peach(ticks = 1, **options, &block)
      raise ArgumentError, "ticks: #{ticks.inspect} is not an Integer" unless ticks.is_a?(Integer)
      ::Ikra.__no_ticks(ticks) if ticks.negative?
      return ::Ikra.__enumerator(self, :peach, [ticks], options) unless block

      begin
        ::Ikra.__section(:peach, :each, self, ticks, options, block, nil)
      rescue ::Ikra::CompileError => error
        ::Ikra.__plainly(error, self, :peach, options, block, ticks)
      end
    end

    # What +each_with_index.map+ gives.
    #
    # @example
    #   %w[a b].pmap_with_index { |_, i| i * 10 } # => [0, 10], 1 kernel
    # @yieldparam element
    # @yieldparam index [Integer]
    # @return [Array] without a block an Enumerator
    def pmap_with_index(**options, &block) = ::Ikra.__enumerator(self, :pmap, [], options).each_with_index(&block)

    # What +each_with_index+ does.
    #
    # @yieldparam element
    # @yieldparam index [Integer]
    # @return [Array, Range] the receiver; without a block an Enumerator
    def peach_with_index(**options, &block) = ::Ikra.__enumerator(self, :peach, [1], options).each_with_index(&block)

    # What +select+ gives.
    #
    # @example
    #   actors.pselect { |actor| actor.progress > 0.5 } # => the very actors, 1 kernel
    # @yieldparam element
    # @return [Array] the elements for which the block is true; without a block an Enumerator
    def pselect(**options, &block) = ::Ikra.__operate(self, :pselect, options, block)

    # The same as {#pselect}.
    def pfilter(**options, &block) = ::Ikra.__operate(self, :pselect, options, block)

    # What +reject+ gives.
    #
    # @yieldparam element
    # @return [Array] the elements for which the block is false or nil; without a block an Enumerator
    def preject(**options, &block) = ::Ikra.__operate(self, :preject, options, block)

    # What +partition+ gives.
    #
    # @yieldparam element
    # @return [Array(Array, Array)] the elements for which the block is true, and the others; without a block an
    #   Enumerator
    def ppartition(**options, &block) = ::Ikra.__operate(self, :ppartition, options, block)

    # What +filter_map+ gives.
    #
    # @yieldparam element
    # @return [Array] the block's values that are true; without a block an Enumerator
    def pfilter_map(**options, &block) = ::Ikra.__operate(self, :pfilter_map, options, block)

    # What +flat_map+ gives.
    #
    # @yieldparam element
    # @return [Array] the block's values; arrays are replaced by their elements; without a block an Enumerator
    def pflat_map(**options, &block) = ::Ikra.__operate(self, :pflat_map, options, block)

    # What +count+ gives.
    #
    # @example
    #   [1, 2, 3].pcount(&:odd?) # => 2, 1 kernel
    # @param item the value to count, in place of a block
    # @yieldparam element
    # @return [Integer] the number of elements for which the block is true
    def pcount(item = (none = true), **options, &block)
      return ::Ikra.__operate(self, :pcount, options, block) if none && block

      ::Ikra.__check(options)
      ::Ikra.__ruby(:pcount, self) { none ? count : count(item) }
    end

    # What +all?+ gives. For elements after the first one for which the block is false, the block has no effect.
    #
    # @param pattern a pattern that elements are compared with by +===+, in place of a block
    # @yieldparam element
    # @return [Boolean]
    def pall?(*pattern, **options, &block) = ::Ikra.__ask(self, :pall?, pattern, options, block)

    # What +any?+ gives. For elements after the first one for which the block is true, the block has no effect.
    #
    # @param (see #pall?)
    # @yieldparam element
    # @return [Boolean]
    def pany?(*pattern, **options, &block) = ::Ikra.__ask(self, :pany?, pattern, options, block)

    # What +none?+ gives. For elements after the first one for which the block is true, the block has no effect.
    #
    # @param (see #pall?)
    # @yieldparam element
    # @return [Boolean]
    def pnone?(*pattern, **options, &block) = ::Ikra.__ask(self, :pnone?, pattern, options, block)

    # What +one?+ gives. For elements after the second one for which the block is true, the block has no effect.
    #
    # @param (see #pall?)
    # @yieldparam element
    # @return [Boolean]
    def pone?(*pattern, **options, &block) = ::Ikra.__ask(self, :pone?, pattern, options, block)

    # What +find+ gives. For elements after the one found, the block has no effect.
    #
    # @example
    #   [5, 7, 0].pfind { |x| 100 / x > 14 } # => 5, 1 kernel
    # @param none [#call, nil] gives the result where there is no such element
    # @yieldparam element
    # @return [Object, nil] the first element for which the block is true; without a block an Enumerator
    def pfind(none = nil, **options, &block) = ::Ikra.__operate(self, :pfind, options, block, *none)

    # The same as {#pfind}.
    def pdetect(none = nil, **options, &block) = ::Ikra.__operate(self, :pfind, options, block, *none)

    # What +find_index+ gives. For elements after the one found, the block has no effect.
    #
    # @param item the value to look for, in place of a block
    # @yieldparam element
    # @return [Integer, nil] index of the first element for which the block is true; without a block an Enumerator
    def pfind_index(item = (none = true), **options, &block)
      return ::Ikra.__operate(self, :pfind_index, options, block) if none

      ::Ikra.__check(options)
      ::Ikra.__ruby(:pfind_index, self) { find_index(item) }
    end

    # What +inject+ gives: the block combines the result so far with the next element. The block must be associative, as
    # addition is. Elements are combined in chunks of 256, in their order. Then the results of the chunks are combined
    # in the same way, and so on, equally on every backend. The block need not be commutative.
    #
    # For more than 256 numbers of one kind, a block that adds them gives the sum, as {#psum} does.
    #
    # With a Symbol, numbers are combined one after the other, as Ruby does it.
    #
    # @example
    #   matrices.preduce { |a, b| a * b }      # => one Matrix, 1 kernel per factor of 256
    #   [1, 2, 3].preduce(10) { |a, b| a + b } # => 16
    #   [1, 2, 3].preduce(:+)                  # => 6, no kernel
    # @overload preduce(start = none, **options)
    #   @param start the value that is combined with the first element, once
    #   @yieldparam memo
    #   @yieldparam element
    # @overload preduce(start = none, operator, **options)
    #   @param start the same
    #   @param operator [Symbol, String] a method that combines two values, in place of a block
    # @return [Object, nil] nil where there is nothing to combine
    def preduce(*args, **options, &block) = ::Ikra.__combine(self, :preduce, args, options, block)

    # The same as {#preduce}.
    def pinject(*args, **options, &block) = ::Ikra.__combine(self, :preduce, args, options, block)

    # All intermediate values of {#preduce}: the combination of the elements up to each one. The last is the result of
    # {#preduce}.
    #
    # @example
    #   [1, 2, 3].pscan { |a, b| a + b } # => [1, 3, 6], at most 3 kernels per factor of 256
    #   [1, 2, 3].pscan(10, :+)          # => [11, 13, 16]
    # @overload pscan(start = none, **options)
    #   @param start the value that is combined with the first element, once
    #   @yieldparam memo
    #   @yieldparam element
    # @overload pscan(start = none, operator, **options)
    #   @param start the same
    #   @param operator [Symbol, String] a method that combines two values, in place of a block
    # @return [Array] as many as there are elements
    def pscan(*args, **options, &block) = ::Ikra.__combine(self, :pscan, args, options, block)

    # What +sum+ gives: exact for Integers, compensated for Floats.
    #
    # @example
    #   actors.psum(&:progress) # => 12.5, 1 kernel, which keeps no values
    # @param start the value that is added to
    # @yieldparam element
    # @return [Numeric]
    def psum(start = 0, **options, &block)
      return ::Ikra.__operate(self, :psum, options, block, start) if block

      ::Ikra.__check(options)
      ::Ikra.__ruby(:psum, self) { sum(start) }
    end

    # What +min+ gives. A block compares two elements; it must order them as +<=>+ does.
    #
    # @param count [Integer, nil] how many; nil: one, and not in an Array
    # @yieldparam one
    # @yieldparam other
    # @return [Object, Array, nil]
    def pmin(count = nil, **options, &block) = ::Ikra.__rank(self, :pmin, count, options, block)

    # What +max+ gives. A block compares two elements; it must order them as +<=>+ does.
    #
    # @param (see #pmin)
    # @yieldparam one
    # @yieldparam other
    # @return [Object, Array, nil]
    def pmax(count = nil, **options, &block) = ::Ikra.__rank(self, :pmax, count, options, block)

    # What +minmax+ gives.
    #
    # @yieldparam one
    # @yieldparam other
    # @return [Array(Object, Object)]
    def pminmax(**options, &block) = ::Ikra.__rank(self, :pminmax, nil, options, block)

    # What +min_by+ gives.
    #
    # @param count [Integer, nil] how many; nil: one, and not in an Array
    # @yieldparam element
    # @return [Object, Array, nil] the first element with the least value of the block; without a block an Enumerator
    def pmin_by(count = nil, **options, &block) = ::Ikra.__operate(self, :pmin_by, options, block, *::Ikra.__count(count))

    # What +max_by+ gives.
    #
    # @param (see #pmin_by)
    # @yieldparam element
    # @return [Object, Array, nil] the first element with the greatest value of the block; without a block an Enumerator
    def pmax_by(count = nil, **options, &block) = ::Ikra.__operate(self, :pmax_by, options, block, *::Ikra.__count(count))

    # What +minmax_by+ gives.
    #
    # @yieldparam element
    # @return [Array(Object, Object)] without a block an Enumerator
    def pminmax_by(**options, &block) = ::Ikra.__operate(self, :pminmax_by, options, block)

    # What +sort+ gives; equal elements stay in their order. A block compares two elements, in kernels; it must order
    # them as +<=>+ does.
    #
    # @yieldparam one
    # @yieldparam other
    # @return [Array]
    # @raise [ArgumentError] where elements do not compare
    def psort(**options, &block) = ::Ikra.__rank(self, :psort, nil, options, block)

    # What +sort_by+ gives; elements of equal keys stay in their order.
    #
    # @yieldparam element
    # @return [Array] without a block an Enumerator
    # @raise [ArgumentError] where keys do not compare
    def psort_by(**options, &block) = ::Ikra.__operate(self, :psort_by, options, block)

    # What +group_by+ gives.
    #
    # @example
    #   actors.pgroup_by(&:street) # => { street => [actor, …], … }, 1 kernel
    # @yieldparam element
    # @return [Hash{Object => Array}] without a block an Enumerator
    def pgroup_by(**options, &block) = ::Ikra.__operate(self, :pgroup_by, options, block)

    # Map and reduce: the block emits pairs of keys and values for each element. The values of equal keys are combined,
    # and then reduced. Pairs are in the order in which sequential Ruby emits them.
    #
    # @example
    #   orders.pmap_reduce(:+) { |o, out| out.emit(o.city, o.price) } # => { "Kyoto" => 12.5, … }
    #   orders.pmap_reduce(reduce: ->(city, prices) { prices.sum / prices.size }) { |o, out| out.emit(o.city, o.price) }
    # @param combine [Symbol, #to_proc, nil] makes one value of two, and must be associative; `:min` and `:max` choose
    #   one, `:+` of Floats gives the exact sum, rounded once
    # @param reduce [#to_proc, nil] makes the result of a key and the Array of its values
    # @param order [Symbol] of the result: `:first` by the first pair of each key, `:key` by key, `:none` any
    # @param lazy [Boolean] whether the result is {Groups}, for a second pass
    # @param engine [Symbol, nil] what groups the pairs: `:direct`, `:small`, `:hash`, `:group` or `:append`; nil: what
    #   a look at some of the keys chooses
    # @yieldparam element
    # @yieldparam out [Emitter]
    # @return [Hash, Array<Array>, Groups] the value for each key; without +combine+ and +reduce+ all pairs
    # @raise [IntegerOverflow] for a sum beyond 64 bits
    # @raise [ArgumentError] where the engine cannot run this
    def pmap_reduce(combine = nil, reduce: nil, order: :first, lazy: false, engine: nil, **options, &block)
      ::Ikra.__map_reduce(self, combine, reduce, order, lazy, { engine: engine, **options }, block)
    end

    # What +tally+ gives.
    #
    # @return [Hash{Object => Integer}] how often each element occurs
    def ptally(**options)
      ::Ikra.__check(options)
      ::Ikra.__tally(self)
    end

    # What +uniq+ gives.
    #
    # @yieldparam element
    # @return [Array] the first element for each of the block's values
    def puniq(**options, &block)
      return ::Ikra.__operate(self, :puniq, options, block) if block

      ::Ikra.__check(options)
      ::Ikra.__ruby(:puniq, self) { ::Ikra.__uniq_of(self) || uniq }
    end

    # What +zip+ gives.
    #
    # @param others [Array<Array, Range>] shorter ones are filled with nil
    # @yieldparam elements [Array] one of the receiver and one of each other
    # @return [Array<Array>, nil] nil with a block
    def pzip(*others, **options, &block)
      return ::Ikra.__operate(self, :pzip, options, block, *::Ikra.__lists(others)) if block

      ::Ikra.__check(options)
      ::Ikra.__ruby(:pzip, self) { zip(*others) }
    end

    # The block's value for one element of the receiver and one of each other list, as many as the receiver has.
    #
    # @example
    #   [1, 2].pcombine([10, 20]) { |x, y| x + y } # => [11, 22], 1 kernel
    # @param others [Array<Array, Range>] shorter ones are filled with nil
    # @yieldparam elements one parameter each
    # @return [Array] without a block an Enumerator
    def pcombine(*others, **options, &block) = ::Ikra.__operate(self, :pcombine, options, block, *::Ikra.__lists(others))

    # The block's value for the neighbours of each element. Where one of them is outside, the value is +fill+.
    #
    # @example
    #   [1, 5, 9].pstencil([-1, 1], 0) { |left, right| right - left } # => [0, 8, 0], 1 kernel
    #   [1, 5, 9].pstencil([-1, 1], 0) { |v| v[1] - v[-1] }           # the same
    #   grid.pstencil([[0, -1], [0, 1]], 0) { |v| v[0, 1] - v[0, -1] }
    # @param offsets [Array<Integer>, Array<Array<Integer>>] distances of the neighbours; in arrays within arrays by
    #   dimension, from the outermost
    # @param fill the value of elements whose neighbours do not all exist
    # @yieldparam neighbours with one parameter {Neighbours}, else one parameter for each offset, in their order
    # @return [Array] in the form of the receiver; without a block an Enumerator
    # @raise [ArgumentError] for offsets that are not of the same length, and for rows that are not
    def pstencil(offsets, fill, **options, &block) = ::Ikra.__operate(self, :pstencil, options, block, offsets, fill)

    # A chain of methods that runs nothing until its values are asked for, and then as few kernels as possible. It has
    # the methods and the meaning of +lazy+.
    #
    # @example
    #   actors.plazy.map(&:speed).select { |v| v > 1.0 }.reduce { |a, b| a + b } # 1 kernel, and 1 per factor of 256
    # @return [Lazy]
    def plazy(**options) = ::Ikra.__lazy(self, options)

    # The parallel methods, each of which gives a {Section} that may run while Ruby goes on.
    #
    # @example
    #   section = [1, 2, 3].async.pmap { |x| x * 2 }
    #   section.value # => [2, 4, 6], 1 kernel
    # @return [Async]
    def async = ::Ikra.__async(self)

    # The parallel methods of Array alone.
    module OfArrays
      # What +map!+ does.
      #
      # @yieldparam element
      # @return [Array] the receiver; without a block an Enumerator
      def pmap!(**options, &block) = ::Ikra.__operate(self, :pmap!, options, block)
    end

    # The parallel methods of Array itself.
    module Making
      # A new Array of the block's values for each index. With several sizes it has arrays within arrays.
      #
      # @example
      #   Array.pnew(3) { |i| i * i }         # => [0, 1, 4], 1 kernel
      #   Array.pnew(2, 3) { |y, x| y * 10 + x } # => [[0, 1, 2], [10, 11, 12]], 1 kernel
      #   Array.pnew(2).with_index(5) { |i, n| [i, n] } # => [[0, 5], [1, 6]], 1 kernel
      # @param sizes [Array<Integer>] from the outermost
      # @yieldparam indices [Integer] one parameter for each size
      # @return [Array] without a block an Enumerator of the indices
      # @raise [ArgumentError] for a negative size
      def pnew(*sizes, **options, &block)
        sizes = ::Ikra.__sizes(sizes)
        block ? ::Ikra.__operate(self, :pnew, options, block, *sizes) : Enumerator.new(self, :pnew, sizes, options, Operation.cells(sizes))
      end
    end
  end

  # Operators of which the core knows scans.
  UNSUPPORTED = "Ikra cannot run its block, and was told to leave such to Ruby"
  SCANS = { :+ => :sum, :* => :product }.freeze
  private_constant :UNSUPPORTED, :SCANS

  class << self
    # @api private
    def __plainly(error, base, name, options, block, *args)
      Fallback.run(error, options) { __measured(name, base, block, own: UNSUPPORTED) { Plain.new(base, name, block, args, nil).value } }
    end

    # @api private
    def __no_ticks(ticks)
      CoreMethods.check
      raise ArgumentError, "ticks: #{ticks} is negative"
    end

    # @api private
    def __enumerator(base, name, args, options) = Enumerator.new(base, name, args, options)

    # @api private
    def __operate(base, name, options, block, *args)
      CoreMethods.check
      at_once = -> { __operate_now(base, name, options, block, *args) }
      (Sections.queued(name, block: block, &at_once) if block) || at_once.call
    end

    # @api private
    # The same, where no section is given.
    def __operate_now(base, name, options, block, *args)
      return Enumerator.new(base, name, args, options) unless block

      Sections.wait_for_others if name == :pmap!
      Operation.call(base, name, options, block, *args)
    end

    # @api private
    def __async(base) = Async.new(base)

    # @api private
    def __lazy(base, options)
      __check(options)
      Lazy.new(base, options.freeze)
    end

    # @api private
    # A question about all elements. With a pattern, or without a block, Ruby answers it.
    def __ask(base, name, pattern, options, block)
      return __operate(base, name, options, block) if block && pattern.empty?

      __check(options)
      __ruby(name, base) { base.public_send(name.to_s.delete_prefix("p"), *pattern) }
    end

    # @api private
    def __tally(base) = __ruby(:ptally, base) { (base.is_a?(Array) && __tallied(base)) || base.tally }

    # @api private
    # Each element of an Array once. nil where Ruby's method must run.
    def __uniq_of(base)
      return unless base.is_a?(Array)

      uniq = base.method(:uniq)
      __uniq([].replace(base)) if uniq.owner == Array && uniq.source_location.nil?
    end

    # @api private
    # An operation that compares elements. Without a block, Ruby's own method does.
    def __rank(base, name, count, options, block)
      count = __count(count)
      return __operate(base, name, options, block, *count) if block

      __check(options)
      __ruby(name, base) do
        next (count.nil? && __extreme_floats(base, name)) || base.public_send(name.to_s.delete_prefix("p"), *count) unless name == :psort

        list = base.to_a
        __sorted(list, list, list.size, false) || list.sort
      end
    end

    # The least number of Floats for which all cores, after reading the Floats out, take less time than Ruby's method.
    MIN_PARALLEL_FLOATS = 1 << 14
    private_constant :MIN_PARALLEL_FLOATS

    # @api private
    # The least of the Floats of a long list, the greatest, or both. nil where Ruby's method must run, as where an
    # element is no Float, or NaN.
    def __extreme_floats(list, name)
      return unless list.instance_of?(Array) && list.size >= MIN_PARALLEL_FLOATS && list.first.is_a?(Float) && __own?(:<=>)

      found = { pmin: [false], pmax: [true], pminmax: [false, true] }.fetch(name).map do |greatest|
        index = __extreme(list, greatest) or return
        list[index]
      end
      name == :pminmax ? found : found.first
    end

    # @api private
    # How many of the least or greatest elements are wanted. nil: one.
    def __count(count)
      return if count.nil?

      count = Operation.integer(count)
      raise ArgumentError, "negative size (#{count})" if count.negative?

      count
    end

    # @api private
    # Combines elements. With an operator, Ruby combines numbers. Other elements are combined by a block that calls the
    # operator.
    def __combine(base, name, args, options, block)
      if args.size > (block ? 1 : 2)
        CoreMethods.check
        raise ArgumentError, "wrong number of arguments (given #{args.size}, expected 0..#{block ? 1 : 2})"
      end
      return __operate(base, name, options, block, *args) if block
      raise LocalJumpError, "no block given" if args.empty?

      *start, operator = args
      operator = operator.to_sym if operator.is_a?(String)
      raise TypeError, "#{operator.inspect} is not a symbol nor a string" unless operator.is_a?(Symbol)

      __check(options)
      __ruby(name, base) do
        numbers = start.all?(Numeric) && (base.is_a?(Range) || base.all?(Numeric))
        next Operation.call(base, name, options, operator.to_proc, *start) unless numbers
        next base.inject(*start, operator) if name == :preduce

        values = [*start, *base]
        values.empty? ? values : __running(values, operator, !__scan_of(operator).nil?).drop(start.size)
      end
    end

    # @api private
    # The core's scan for an operator of numbers. nil where there is none, or the operator is not Ruby's own.
    def __scan_of(operator)
      scan = SCANS[operator] or return
      scan if __own?(operator)
    end

    # @api private
    # Whether an operator of numbers is Ruby's own.
    def __own?(operator)
      [Integer, Float].all? do |number|
        method = number.instance_method(operator)
        method.owner == number && method.source_location.nil?
      end
    end

    # @api private
    # Whether a block only adds its two values, as numbers in 64 bits are added. Then it computes their sum. Values that
    # are known must be numbers, too.
    def __sums?(block, options, known)
      wanted = ->(option) { options.fetch(option) { config.public_send(option) }.to_s }
      known.all? { |value| value.is_a?(Integer) || value.is_a?(Float) } &&
        wanted[:precision] == "f64" && wanted[:overflow] == "raise" && __adds?(block) && !__scan_of(:+).nil?
    end

    # @api private
    # The other lists, as +zip+ takes them.
    def __lists(others)
      CoreMethods.check
      raise ArgumentError, "no list to combine with" if others.empty?
      raise ArgumentError, "#{others.size} lists: at most #{Operation::MAX_LISTS} are combined with the receiver" if others.size > Operation::MAX_LISTS

      others.map do |other|
        next other if other.is_a?(Array) || other.is_a?(Range)
        next other.to_ary if other.respond_to?(:to_ary)
        raise TypeError, "wrong argument type #{other.class} (must respond to :each)" unless other.respond_to?(:each)

        other.to_a
      end
    end

    # @api private
    def __sizes(sizes)
      CoreMethods.check
      raise ArgumentError, "no size" if sizes.empty?
      raise ArgumentError, "#{sizes.size} sizes: at most #{Operation::MAX_DIMENSIONS} dimensions" if sizes.size > Operation::MAX_DIMENSIONS

      sizes.map do |size|
        size = Operation.integer(size)
        raise ArgumentError, "negative array size" if size.negative?

        size
      end
    end
  end
end
