# frozen_string_literal: true

module Ikra
  # What the block of {Parallel#pmap_reduce} emits pairs to. Kernels run this very code.
  class Emitter
    # @api private
    # The last pair.
    attr_reader :last

    # @api private
    def initialize
      @last = nil
    end

    # @api private
    # A pair that updates a captured Hash, in front of those before it.
    def self.__pair(key, value, previous) = Pair.new(key, value, previous)

    # @api private
    # The same in a section of several ticks.
    def self.__pair_in_tick(key, value, previous, tick) = PairInTick.new(key, value, previous, tick)

    # Emits a pair.
    #
    # @param key what decides the pair's group: values with `eql?` keys are in one group
    # @param value a value of the group
    # @return [self]
    def emit(key, value)
      @last = Pair.new(key, value, @last)
      self
    end
  end

  # The same where tables group the pairs while they are emitted. Only kernels run it.
  # @api private
  class Adder < Emitter
    def initialize
      @count = 0
    end

    def emit(key, value)
      @count = ::Ikra.__add(key, value, @count)
      self
    end
  end

  # The same where only the number of pairs counts. Only kernels run it.
  # @api private
  class Counter < Adder
    def emit(key, _value)
      @count = ::Ikra.__add(key, 1, @count)
      self
    end
  end

  # A pair that an element emitted, and the one before it.
  # @api private
  class Pair
    attr_reader :key, :value, :previous

    def initialize(key, value, previous)
      @key = key
      @value = value
      @previous = previous
    end
  end

  # The same, with the tick in which it was emitted.
  # @api private
  class PairInTick
    attr_reader :key, :value, :previous, :tick

    def initialize(key, value, previous, tick)
      @key = key
      @value = value
      @previous = previous
      @tick = tick
    end
  end
  private_constant :Pair, :PairInTick

  # One call of {Parallel#pmap_reduce}: the sections that it runs, and the Hash that it makes of their results.
  #
  # A section runs the block and gives all pairs, with those of each key together. Then a section combines the values
  # of each group, and another reduces them.
  # @api private
  class Reducing
    # How the pairs of a result are ordered.
    ORDERS = %i[first key none].freeze
    # Operators of two values that are methods of neither.
    OWN = { min: ->(a, b) { [a, b].min }, max: ->(a, b) { [a, b].max } }.freeze
    # Operators that combine Integers while their keys are inserted into tables, and the methods that must be Ruby's.
    TABLED = { :+ => %i[sum +], :& => %i[and &], :| => %i[or |], min: %i[min <=>], max: %i[max <=>] }.freeze
    # Methods of the Array of a group's values that tables compute, and how.
    FOLDS = { "sum" => :sum, "min" => :min, "max" => :max, "size" => :count, "length" => :count, "count" => :count }.freeze
    # What groups pairs.
    ENGINES = %i[direct small hash group append].freeze
    # The method that gives a block an emitter, where tables group pairs. What becomes of their values may need another.
    ADDED = Hash.new(:added).merge!(count: :counted).freeze
    # How tables add, where sums are of each slab or of all.
    ADDING = %i[sum total].freeze
    private_constant :ORDERS, :OWN, :TABLED, :FOLDS, :ENGINES, :ADDING

    # @param combine [Symbol, #to_proc, nil]
    # @param reduce [#to_proc, nil]
    # @param order [Symbol]
    # @param options [Hash{Symbol => Object}] those of {Config}
    def initialize(base, combine, reduce, order, options, block)
      CoreMethods.check
      raise ArgumentError, "no block that emits pairs" unless block
      raise ArgumentError, "order: #{order.inspect} is none of :first, :key, :none" unless ORDERS.include?(order)

      @engine = options[:engine]
      options = options.except(:engine)
      check_engine(combine, reduce) unless @engine.nil?
      Ikra.__check(options)
      @base = base
      # Some operators are not combined by calling them.
      @combine = combine.is_a?(Symbol) ? combine : callable(:combine, combine)
      @reduce = callable(:reduce, reduce)
      @order = order
      @options = options
      @block = block
    end

    # The code that +reduce+ calls.
    attr_writer :reduces

    # Whether groups may stay in columns.
    attr_writer :stays

    # Whether a `break` in the block gave the value.
    def left? = @left

    # The result: a Hash, {Groups::Columns}, or the pairs themselves where nothing combines or reduces them.
    def value
      @left = true
      value = catch(self) { computed.tap { @left = false } }
      @left ? value : ordered(value)
    rescue CompileError => error
      @left = false
      Fallback.run(error, @options) { ordered(plain) }
    end

    # What {Groups} are made of: the same, or words of which no Strings are made yet.
    def groups = (counted_words(@base) if @reduce.nil? && @order != :key) || value

    private

    def callable(name, given)
      return if given.nil?
      raise TypeError, "#{name}: #{given.inspect} is neither a Symbol nor callable" unless given.respond_to?(:to_proc)

      given.to_proc
    end

    def computed
      grouped = @combine || @reduce
      keys, totals = folded
      return reduced(keys, totals) if totals

      # Without elements there are no lists.
      keys, values, starts, combined = emitted(@base, grouped)
      return (keys ? Reducing.list(keys).zip(Reducing.list(values)) : []) unless grouped
      return Groups.columns(*keys) if combined == :columns
      return {} if keys.nil? || keys.size.zero?

      keys, values, starts = Ikra.__by_hash(keys, values) unless starts || combined
      values = combined(values, starts) if @combine && !combined
      return Ikra.__paired(keys, values) unless @reduce

      values, starts = Reducing.single(values) if @combine
      reduced_by_block(keys, values, starts)
    end

    def reduced_by_block(keys, values, starts)
      Ikra.__paired(keys, section(@reduce, 0...keys.size, [:reduction, keys, values, starts]))
    end

    # The keys, and for each the sum, the extreme or the number of its values, computed by tables. nil if +reduce+ needs
    # anything else, or if tables cannot compute it.
    def folded
      return if @combine || @reduces.nil? || @engine || !plain_numbers?

      name, @alone = Ikra.__asks(@reduces.to_proc)
      how = FOLDS[name]
      return unless how && own_list?(name) && (@alone || how != :count) && (how == :count || own?(how == :sum ? :+ : :<=>))

      keys, totals, = in_tables({ __groups: true, __tables: true, __combine: how })
      [keys, totals] if totals
    rescue IntegerOverflow, CompileError
      # The block itself tells whether it needs that sum, and what kernels cannot do.
    end

    def in_tables(form)
      return Reducing.within(@base, @block, form, @options) unless @base.is_a?(Array) || @base.is_a?(Range)

      section(@block, @base, [Reducing.giver(form)], **form)
    end

    # An Array of a group's total alone has that total.
    def reduced(keys, totals)
      return Ikra.__paired(keys, totals) if @alone || keys.empty?

      reduced_by_block(keys, *Reducing.single(totals))
    end

    # Whether kernels compute as tables do.
    def plain_numbers?
      wanted = ->(option) { @options.fetch(option) { Ikra.config.public_send(option) }.to_s }
      wanted[:precision] == "f64" && wanted[:overflow] == "raise" && wanted[:check] != "races"
    end

    def own_list?(name)
      method = Array.instance_method(name)
      method.owner == Array && method.source_location.nil?
    end

    # The pairs of all elements: those of a chain by the kernel that computes its values, where that is possible.
    def emitted(base, grouped)
      form = form(grouped)
      # The kernel groups them, or the host does.
      words = counted_words(base) if grouped
      return words.lists(true).push(nil, true) if words

      forms = form[:__combine] && @engine.nil? ? [{ __tables: true, **form }, form] : [form]
      of = ->(list, one) { section(@block, list, [Reducing.giver(one)], **one) }
      return first_of(forms) { |one| of.call(base, one) } if base.is_a?(Array) || base.is_a?(Range)

      first_of(forms) { |one| Reducing.within(base, @block, one, @options) } ||
        Reducing.elements(base).then { |list| first_of(forms) { |one| of.call(list, one) } }
    end

    # The words of a chain that are only counted. nil: a section emits pairs.
    def counted_words(base) = (base.__send__(:counted_words, @block) if base.is_a?(Lazy) && @engine.nil? && ADDING.include?(form(true)[:__combine]))

    # What a section makes of the pairs.
    def form(grouped) = grouped ? { __groups: true, **tabled } : { __pairs: true }

    # The first value that is not nil.
    def first_of(forms)
      forms.each do |form|
        value = yield(form)
        return value unless value.nil?
      end
      nil
    end

    # What tables combine while pairs are inserted.
    def tabled
      how, method = TABLED[@combine] if @combine.is_a?(Symbol)
      return {} unless how && own?(method)

      { __combine: how, __engine: @engine || :auto, **(@stays ? { __columns: true } : {}) }
    end

    # Whether an operator is Ruby's own. Floats have no operators of bits.
    def own?(operator)
      return Ikra.__own?(operator) unless %i[& |].include?(operator)

      method = Integer.instance_method(operator)
      method.owner == Integer && method.source_location.nil?
    end

    def check_engine(combine, reduce)
      why =
        if !ENGINES.include?(@engine) then "is none of #{ENGINES.map(&:inspect).join(", ")}"
        elsif @engine == :append then ("gives all pairs, so combine and reduce are not for it" if combine || reduce)
        elsif !combine && !reduce then "groups pairs, but without combine and reduce none are grouped: this is :append"
        elsif @engine != :group && !TABLED.key?(combine) then "combines while it inserts, so combine must be one of :+, :min, :max, :&, :|"
        end
      raise ArgumentError, "engine: #{@engine.inspect} #{why}" if why
    end

    def combined(values, starts)
      (Ikra.__group_sums(values, starts, false) if @combine == :+ && Ikra.__own?(:+)) || one_by_one(values, starts)
    end

    # The values of each group, combined from left to right by a section.
    def one_by_one(values, starts)
      combine = OWN.fetch(@combine) { @combine.to_proc }
      try_associativity(combine, values, starts)
      section(combine, 0...(starts.size - 1), [:group, values, starts])
    end

    # Combines the first three values of some groups from either end. Raises where that makes a difference.
    def try_associativity(combine, values, starts)
      return unless @options.fetch(:check, Ikra.config.check).to_s == "associative"

      starts, values = [starts, values].map { |list| Reducing.list(list) }
      threes = starts.each_cons(2).filter_map { |from, to| values[from, 3] if to - from > 2 }.first(Operation::SAMPLES)
      return if threes.empty?

      tried = section(combine, 0...threes.size, [:both_ways, threes.flatten(1), 3])
      Operation.check_associativity("combine", tried) { |at| threes[at] }
    end

    # Runs a section within methods of the prelude. A `break` in the user's block ends the call with its value.
    def section(block, base, *within, **more)
      how, value = Ikra.__section(:pmap_reduce, :map, base, 1, { **@options, **more }, block, within)
      throw(self, value) if how == :left

      value
    end

    # Ruby's own methods, one element after the other.
    def plain
      pairs = []
      Reducing.elements(@base).each_with_index do |element, index|
        Thread.current[:__ikra_position] = Position.new(index, 0)
        @block.call(element, out = Emitter.new)
        pairs.concat(Reducing.chain(out.last))
      end
      return pairs unless @combine || @reduce

      groups = pairs.each_with_object({}) { |(key, value), found| (found[key] ||= []) << value }
      groups.transform_values! { |values| [values.reduce(&OWN.fetch(@combine) { @combine.to_proc })] } if @combine
      @reduce ? groups.to_h { |key, values| [key, @reduce.call(key, values)] } : groups.transform_values!(&:first)
    end

    def ordered(pairs)
      return pairs unless @order == :key && pairs.is_a?(Hash)

      list = pairs.to_a
      Operation.sorted(list, list.map(&:first)).to_h
    end

    class << self
      # What a block emits for the values of a chain or an MDArray, by the kernel that computes them. nil where they
      # need a list first.
      def within(base, block, form, options = {})
        base.__send__(:emitted, block, form, options)
      rescue CompileError
        # The two may compile apart. If not, the error is theirs.
      end

      # The method that gives a block an emitter.
      def giver(form) = form[:__tables] ? ADDED[form[:__combine]] : :emitted

      # The elements of a chain, an MDArray, an Array or a Range.
      def elements(base)
        case base
        when MDArray then base.to_flat_a
        when Lazy then base.to_a
        else base
        end
      end

      # The elements of a chain or an MDArray, grouped by themselves or by the values of a block. Gives each key once,
      # the elements of all groups, and where those of each begin. nil where this needs a list first.
      #
      # With `combine`, and where tables can do it: each key once, one value for each, nil, and true. The block gets a
      # list of all elements where Ruby's own method serves better.
      def groups(base, key = nil, combine = nil, &on_list)
        block = key ? proc { |x, out| out.emit(key.call(x), x) } : proc { |x, out| out.emit(x, nil) }
        form = { __groups: true, **(combine ? { __combine: combine } : {}) }
        found = (counted(base, combine, &on_list) if combine && key.nil?) || within(base, block, form) or return
        keys, values, starts, combined = found
        return [[], [], [0]] if keys.nil? || keys.size.zero?
        return found if combined

        keys, values, starts = Ikra.__by_hash(keys, values) unless starts
        [keys, values, list(starts)]
      end

      # The same for elements by themselves. Kernels group them while they compute them. A host that runs these kernels
      # groups Strings after that.
      def counted(base, combine, &on_list)
        words = base.__send__(:counted_words) if base.is_a?(Lazy)
        return words.lists(false).push(nil, true) if words

        ones = proc { |x, out| out.emit(x, 1) }
        form = { __groups: true, __tables: true, __combine: :sum }
        found = within(base, ones, { **form, __no_texts: true })
        return found if found

        wanted = combine == :count ? :__counts : :__each
        keys, counts = base.__send__(:counted_texts, wanted, &on_list) if base.is_a?(Lazy)
        keys ? [keys, counts, nil, true] : within(base, ones, form)
      rescue CompileError
        # as for #within
      end

      # How often each element occurs. The keys are the very elements.
      def tally(base)
        keys, counts, starts, combined = groups(base, nil, :count) { |list| return list.tally }
        return unless keys

        counts = starts.each_cons(2).map { |from, to| to - from } unless combined
        Ikra.__counted(keys, counts)
      end

      # The first element of each group. nil where this needs a list first.
      def uniq(base, key)
        keys, values, starts, combined = groups(base, key, :first) { |list| return list.uniq }
        return keys unless keys && key
        return values if combined

        values = list(values)
        keys.each_index.map { |group| values[starts[group]] }
      end

      # Yields the elements of each group. Gives a Hash of what the block makes of them, or of the elements themselves.
      def group_by(base, key)
        keys, values, starts = groups(base, key)
        return unless keys
        return Ikra.__split(keys, list(values), starts) unless block_given?

        keys.each_index.to_h do |group|
          from = starts[group]
          count = starts[group + 1] - from
          [keys[group], yield(values.is_a?(Buffer) ? values.to_list(from, count) : values[from, count])]
        end
      end

      def list(values) = values.is_a?(Buffer) ? values.to_list : values

      # The pairs of a chain, the first one first.
      def chain(pair)
        pairs = []
        while pair
          pairs << [pair.key, pair.value]
          pair = pair.previous
        end
        pairs.reverse
      end

      # Groups of one value each.
      def single(values) = [values, Buffer.from_list(:i64, (0..values.size).to_a)]
    end
  end
  private_constant :Reducing

  # A program of map and reduce as a class, which may have instance variables and run several times.
  #
  # A subclass defines +map+, which calls {#emit}. It may define +combine+ and +reduce+, as {Parallel#pmap_reduce} takes
  # them. These read instance variables, but assign none: within +map+ the object is a frozen copy of its own.
  #
  # @example
  #   class WordCount < Ikra::MapReduce
  #     def map(line) = line.split.each { |word| emit(word, 1) }
  #     def combine(a, b) = a + b
  #   end
  #   WordCount.new.run(Ikra.lines("book.txt")) # => { "the" => 6021, … }
  class MapReduce
    # @!method map(element)
    #   Emits the pairs of an element. Subclasses define it.
    #   @abstract
    # @!method combine(one, other)
    #   Makes one value of two. It must be associative. Subclasses may define it.
    #   @abstract
    # @!method reduce(key, values)
    #   The result of a key and the Array of its values. Subclasses may define it.
    #   @abstract

    # Runs the program over all elements.
    #
    # @param source [Array, Range, Lazy, Groups, MDArray, #to_a] the elements
    # @param order (see Parallel#pmap_reduce)
    # @param lazy (see Parallel#pmap_reduce)
    # @return (see Parallel#pmap_reduce)
    # @raise [CompileError] where +combine+ or +reduce+ call {#emit}
    # @raise [NoMethodError] where the class has no +map+
    # @raise [FrozenError] where +map+ assigns instance variables
    def run(source, order: :first, lazy: false, **options)
      raise NoMethodError, "#{self.class} has no method map" unless respond_to?(:map, true)

      job = self
      # What is not found here raises when it emits.
      %i[combine reduce].each { |name| Ikra.__emits(method(name).to_proc) if respond_to?(name, true) }
      combine = ->(one, other) { job.__send__(:combine, one, other) } if respond_to?(:combine, true)
      reduce = ->(key, values) { job.__send__(:reduce, key, values) } if respond_to?(:reduce, true)
      source = source.__base(options) if source.is_a?(Groups)
      source = source.to_a unless [Array, Range, Lazy, MDArray].any? { |type| source.is_a?(type) }
      map = proc { |x, out| job.__emitting_to(out).__send__(:map, x) }
      Ikra.__map_reduce(source, combine, reduce, order, lazy, options, map, reduce && method(:reduce).to_proc)
    end

    # Emits a pair, within +map+.
    #
    # @param key (see Emitter#emit)
    # @param value (see Emitter#emit)
    # @return [self]
    def emit(key, value)
      raise ArgumentError, "emit is called outside of map" if @__out.nil?

      @__out.emit(key, value)
      self
    end

    # @api private
    # A frozen copy whose pairs go there.
    def __emitting_to(out)
      copy = dup
      copy.__out = out
      copy.freeze
    end

    # @api private
    attr_writer :__out
  end

  class << self
    # @api private
    def __add(_key, _value, _number) = raise(ArgumentError, "emit is called outside of the block")

    # @api private
    # @param reduces [Proc, nil] the code that +reduce+ calls
    def __map_reduce(base, combine, reduce, order, lazy, options, block, reduces = reduce)
      raise ArgumentError, "lazy: #{lazy.inspect} is neither true nor false" unless [true, false].include?(lazy)

      in_slabs = base.is_a?(Lazy) && base.in_slabs?
      reducing = (in_slabs ? MergedReducing : Reducing).new(base, combine, reduce, order, options, block)
      reducing.reduces = reduces
      reducing.stays = lazy && !in_slabs && reduce.nil? && order != :key
      at_once = lambda do
        # Each slab is measured by itself.
        found = in_slabs ? reducing.value : __measured(:pmap_reduce, base, block) { lazy ? reducing.groups : reducing.value }
        lazy && !reducing.left? ? Groups.new(found) : found
      end
      (base.is_a?(Array) || base.is_a?(Range) ? Sections.queued(:pmap_reduce, &at_once) : nil) || at_once.call
    end

    # @api private
    # Groups the values of a chain or an MDArray. nil where they need a list first.
    def __grouping(base)
      __measured(:map_reduce, base) { yield(Reducing) }
    end
  end
end
