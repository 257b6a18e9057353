# frozen_string_literal: true

module Ikra
  # The result of {Parallel#plazy}: a chain of methods that runs nothing until its values are asked for, and then as few
  # kernels as possible. It has the methods and the meaning of Enumerator::Lazy. The base is read when the values are
  # asked for. Elements that the sequential chain would not have reached raise nothing.
  #
  # Blocks give values. They may change the elements that they are given. Then more elements may be changed than those
  # that are asked for.
  #
  # @example
  #   (1..1_000_000).plazy.map { |x| x * x }.select(&:even?).reduce { |a, b| a + b } # 1 kernel, and 1 per factor of 256
  #   [3, 0, 1].plazy.map { |x| 6 / x }.first                                        # => 2
  class Lazy
    include Enumerable

    # @api private
    attr_reader :base, :options, :stages

    # @api private
    def initialize(base, options, stages = [])
      CoreMethods.check
      @base = base
      bounds = [base.begin, base.end] if base.is_a?(Range)
      raise ArgumentError, "Ikra runs over Arrays and over Ranges of Integers with an end, not over #{base.inspect}" unless bounds.nil? || bounds.all?(Integer)

      @options = options
      @stages = stages.freeze
    end

    # @!group Chains

    # @yieldparam element
    # @return [Lazy]
    def map(&block)
      block = needed(:map, block)
      with(zipped? ? :map_zipped : :map, &block)
    end
    alias collect map

    # @yieldparam element
    # @return [Lazy]
    def select(&block) = with(:select, &needed(:select, block))
    alias filter select
    alias find_all select

    # @yieldparam element
    # @return [Lazy]
    def reject(&block) = with(:reject, &needed(:reject, block))

    # @yieldparam element
    # @return [Lazy]
    def filter_map(&block) = with(:filter_map, &needed(:filter_map, block))

    # The block's value for each element. Arrays are replaced by their elements.
    #
    # @yieldparam element
    # @return [Lazy]
    def flat_map(&block) = with(:flat_map, &needed(:flat_map, block))
    alias collect_concat flat_map

    # @yieldparam element
    # @return [Lazy]
    def take_while(&block) = with(:take_while, &needed(:take_while, block))

    # @return [Lazy] without nil
    def compact = with(:compact)

    # The elements, each with its index. With a block the elements themselves, for each of which the block has run.
    #
    # @param offset [Integer, nil] the first index
    # @return [Lazy]
    def with_index(offset = 0, &block) = with(:with_index, offset.nil? ? 0 : Operation.integer(offset), &block)

    # The elements, each with its index. With a block, as in Ruby, what {#each} does with both.
    #
    # @return [Lazy, Object]
    def each_with_index(&block)
      chain = with_index(0)
      return chain unless block

      chain.each(&block)
      base
    end

    # @param others [Array<Enumerable>] shorter ones are filled with nil
    # @return [Lazy, nil] with a block, which then runs on the host, nil
    def zip(*others, &block)
      chain = others.empty? ? map_packed(->(element) { [element] }) : with(:zip, *lists(others))
      return chain unless block

      chain.each(&block)
      nil
    end

    # The block's value for one element of the chain and one of each other list.
    #
    # @param others (see #zip)
    # @yieldparam elements one parameter each
    # @return [Lazy]
    def combine(*others, &block)
      raise ArgumentError, "no list to combine with" if others.empty?

      with(:combine, *lists(others), &needed(:combine, block))
    end

    # The block's value for the neighbours of each element ({Parallel#pstencil}).
    #
    # @param offsets (see Parallel#pstencil)
    # @param fill (see Parallel#pstencil)
    # @return [Lazy]
    def stencil(offsets, fill, &block) = with(:stencil, offsets, fill, &needed(:stencil, block))

    # @param count [Integer]
    # @return [Lazy]
    def take(count) = with(:take, natural(count, "attempt to take negative size"))

    # @param count [Integer]
    # @return [Lazy]
    def drop(count) = with(:drop, natural(count, "attempt to drop negative size"))

    # @param size [Integer]
    # @return [Lazy] arrays of +size+ elements; with a block, which then runs on the host, self
    def each_slice(size, &block)
      raise ArgumentError, "invalid slice size" unless (size = Operation.integer(size)).positive?

      chain = with(:each_slice, size)
      return chain unless block

      chain.each(&block)
      self
    end

    # @!endgroup

    # @!group Values

    # @return [Array] all values
    def to_a = forced(:to_a) { all }
    alias force to_a
    alias entries to_a

    # The first value, or the first +count+ values. Others may be computed, but raise nothing.
    #
    # @return [Object, nil, Array]
    def first(count = (one = true))
      return first(1).first if one

      count = natural(count, "attempt to take negative size")
      forced(:first, count) { result(count).tap { |_, error| raise error if error }.first }
    end

    # Gives each value to the block, on the host.
    #
    # @return [self] without a block too
    def each(&block)
      return self unless block

      list, error = before_error
      list.each(&block)
      raise error if error

      self
    end

    # Runs the block for each value, in parallel: what {Parallel#peach} does with all values.
    #
    # @example
    #   counts = Hash.new(0)
    #   Ikra.lines("book.txt").peach { |line| line.split.each { |word| counts[word] += 1 } }
    # @param ticks (see Parallel#peach)
    # @yieldparam value
    # @return [self]
    # @raise [CompileError] for a block that Ikra cannot run
    def peach(ticks = 1, &block)
      Parallel.instance_method(:peach).bind_call(to_a, ticks, **options, &needed(:peach, block))
      self
    end

    # What {Parallel#preduce} gives for the values. A block combines them in the kernel that computes them.
    #
    # Chunks are of 256 elements, before any elements are left out. Integers are added (+:++) by the kernel that
    # computes them. A block that adds more than a chunk of numbers of one kind gives their sum, by one kernel.
    #
    # @return [Object, nil]
    def reduce(*args, &block)
      return operated(args) unless block
      raise ArgumentError, "wrong number of arguments (given #{args.size}, expected 0..1)" if args.size > 1

      forced(:reduce, *args, block) { combined(args, block) }
    end
    alias inject reduce

    # The number of values. The kernel that computes them counts them.
    #
    # @return [Integer]
    def count(*item, &block)
      return to_a.count(*item) unless item.empty?

      (block ? select(&block) : self).__send__(:total, :count, &:count)
    end

    # The sum of all values. The kernel that computes them adds them, where they are all Integers or all Floats.
    #
    # @return [Numeric] as Array#sum adds: exactly, or compensated, in the order of {Parallel#psum}
    def sum(start = 0, &block)
      chain = block ? map_packed(block) : self
      # A sum with a Float as its start is compensated from there on.
      return Total.on_list(chain.to_a, :sum, start) unless start.is_a?(Integer) || start.eql?(0.0)

      chain.__send__(:total, :sum) { |total| total.sum(start) }
    end

    # The first value for which the block is true. Others may be computed, but raise nothing.
    #
    # @return [Object, nil]
    def find(none = nil, &block)
      return super unless block

      found = select(&block).first(1)
      found.empty? ? none&.call : found.first
    end
    alias detect find

    # @return [Boolean]
    def any?(*pattern, &block) = block && pattern.empty? ? !select(&block).first(1).empty? : super

    # @return [Boolean]
    def none?(*pattern, &block) = block && pattern.empty? ? select(&block).first(1).empty? : super

    # @return [Boolean]
    def all?(*pattern, &block) = block && pattern.empty? ? reject(&block).first(1).empty? : super

    # @return [Boolean]
    def one?(*pattern, &block) = block && pattern.empty? ? select(&block).first(2).size == 1 : super

    # @!method min(count = nil)
    #   The least value. Without a block the kernel that computes the values finds it, where they are all Integers or
    #   all Floats. A block compares two values, in parallel; it must order them as +<=>+ does.
    #
    #   @param count [Integer, nil] so many of the least values, in order
    #   @yieldparam one
    #   @yieldparam other
    #   @yieldreturn [Integer] as +<=>+ gives it
    #   @return [Object, nil, Array] nil where there are no values; an Array with a count
    # @!method max(count = nil)
    #   The greatest value, found as the least one is by {#min}.
    #
    #   @param (see #min)
    #   @return (see #min)
    %i[min max].each do |name|
      define_method(name) do |count = nil, &block|
        next [] if ::Ikra.__count(count) == 0

        count || block ? ::Ikra.__rank(to_a, :"p#{name}", count, options, block) : total(name, &name)
      end
    end

    # The least and the greatest value, each found as by {#min}.
    #
    # @yieldparam one
    # @yieldparam other
    # @yieldreturn [Integer] as +<=>+ gives it
    # @return [Array(Object, Object)] nil twice where there are no values
    def minmax(&block) = block ? ::Ikra.__rank(to_a, :pminmax, nil, options, block) : total(:minmax, &:minmax)

    # @return [Array]
    def sort(&block) = ::Ikra.__rank(to_a, :psort, nil, options, block)

    # @!method min_by(count = nil)
    #   The first value with the least value of the block. The kernel that computes the values finds it, where the
    #   block's values are all Integers or all Floats.
    #
    #   @param count [Integer, nil] so many values, in the order of the block's values
    #   @yieldparam value
    #   @return [Object, nil, Array] nil where there are no values; an Array with a count; without a block an Enumerator
    # @!method max_by(count = nil)
    #   The first value with the greatest value of the block, found as by {#min_by}.
    #
    #   @param (see #min_by)
    #   @yieldparam value
    #   @return (see #min_by)
    { min_by: :min, max_by: :max }.each do |name, reduction|
      define_method(name) do |count = nil, &block|
        wanted = ::Ikra.__count(count)
        next [] if wanted == 0 && block

        on_list = ->(list) { ::Ikra.__operate_now(list, :"p#{name}", options, block, *wanted) }
        count || block.nil? ? on_list.call(to_a) : by(name, reduction, block, &on_list)
      end
    end

    # @!method minmax_by
    #   The values with the least and the greatest value of the block, as {Parallel#pminmax_by} finds them.
    #
    #   @yieldparam value
    #   @return [Array(Object, Object)] without a block an Enumerator
    # @!method sort_by
    #   All values in the order of the block's values, as {Parallel#psort_by} sorts them.
    #
    #   @yieldparam value
    #   @return [Array] without a block an Enumerator
    # @!method partition
    #   The values for which the block is true, and the others.
    #
    #   @yieldparam value
    #   @return [Array(Array, Array)] without a block an Enumerator
    %i[minmax_by sort_by partition].each do |name|
      define_method(name) { |&block| ::Ikra.__operate_now(to_a, :"p#{name}", options, block) }
    end

    # All values by the block's values, as {Parallel#pgroup_by} groups them. The kernel that computes them also computes
    # their keys.
    #
    # @yieldparam value
    # @return [Hash{Object => Array}] without a block an Enumerator
    def group_by(&block) = (block && ::Ikra.__grouping(self) { |groups| groups.group_by(self, block) }) || ::Ikra.__operate_now(to_a, :pgroup_by, options, block)

    # @return [Array] the first value for each of the block's values; without a block each value once
    def uniq(&block)
      ::Ikra.__grouping(self) { |groups| groups.uniq(self, block) } ||
        (block ? ::Ikra.__operate_now(to_a, :puniq, options, block) : to_a.then { |list| ::Ikra.__uniq_of(list) || list.uniq })
    end

    # {Parallel#pmap_reduce} over the values.
    #
    # @param combine (see Parallel#pmap_reduce)
    # @param reduce (see Parallel#pmap_reduce)
    # @param order (see Parallel#pmap_reduce)
    # @param lazy (see Parallel#pmap_reduce)
    # @param engine (see Parallel#pmap_reduce)
    # @yieldparam value
    # @yieldparam out [Emitter]
    # @return (see Parallel#pmap_reduce)
    def map_reduce(combine = nil, reduce: nil, order: :first, lazy: false, engine: nil, &block)
      ::Ikra.__map_reduce(self, combine, reduce, order, lazy, { engine: engine, **options }, block)
    end

    # @return [Hash{Object => Integer}] how often each value occurs
    def tally(*counts)
      return super unless counts.empty?

      ::Ikra.__grouping(self) { |groups| groups.tally(self) } || ::Ikra.__tally(to_a)
    end

    # The values that occur most often, each with their number: +tally.top(count)+, but without a Hash where words of
    # lines are only counted.
    #
    # @example
    #   Ikra.lines("book.txt").flat_map(&:split).top(2) # => [["the", 6021], ["and", 4102]]
    # @param count [Integer]
    # @return [Array<Array>] the most frequent value first; of equally frequent ones the first
    def top(count) = ::Ikra.__top(tally, count)

    # @return [Integer, nil] the number of values, where that is known before any is computed
    def size
      return if stages.any? { |stage| %i[select reject filter_map compact flat_map take_while].include?(stage.name) }

      stages.reduce(base.size) { |size, stage| stage.size(size) }
    end

    # @!endgroup

    # @api private
    # Whether its results are merged from those of slabs.
    def in_slabs? = false

    # @return [self]
    def lazy = self

    # @return [Enumerator] of the values
    def eager = ::Enumerator.new(-> { size }) { |yielder| each { |value| yielder << value } }

    # The chain as text. Nothing runs.
    def inspect
      stages.reduce("#<#{self.class}: #{base.inspect}>") { |shown, stage| "#<#{self.class}: #{shown}:#{stage}>" }
    end
    alias to_s inspect

    private

    def with(name, *args, &block) = followed_by([Stage.new(name, args, block)])

    # The chain with these stages behind its own.
    def followed_by(stages) = Lazy.new(base, options, [*self.stages, *stages])

    def needed(name, block) = block || raise(ArgumentError, "tried to call lazy #{name} without a block")

    # Whether elements are what +zip+ gave and Ruby's +map+ takes that for one value: from Ruby 3.4 on it does, in 3.3
    # where all that is zipped is Arrays.
    def zipped?
      zip = stages.reverse_each.find { |stage| !stage.selects? }
      return false unless zip&.name == :zip

      RUBY_VERSION >= "3.4" || (RUBY_VERSION >= "3.3" && zip.args.all?(Array))
    end

    def natural(count, message)
      count = Operation.integer(count)
      raise ArgumentError, message if count.negative?

      count
    end

    def lists(others)
      others.each { |other| raise TypeError, "wrong argument type #{other.class} (must respond to :each)" unless other.respond_to?(:each) }
    end

    # As `map`, but the block gets one array of values that are passed side by side, as for `sum`.
    def map_packed(block) = with(:map_packed, &block)

    # Runs the chain. Where kernels cannot run it and the user asked for plain Ruby, runs that.
    def forced(name, *args, &work)
      ::Ikra.__measured(:plazy, base, stages.filter_map(&:block).first, &work)
    rescue CompileError => error
      Fallback.run(error, @options) { Chain.new(self).public_send(name, *args) }
    end

    # The values, and the error that ended them.
    def before_error = forced(:each_with_error) { result(nil) }

    def plan = frozen? ? Plan.new(stages) : (@plan ||= Plan.new(stages))

    def all
      list, error = result(nil, strict: true)
      raise error if error

      list
    end

    # The same, or so many of them.
    def result(most, strict: false)
      ::Ikra.__chain(plan, nil)
      *before, last = plan.steps
      list, error = through(before)
      through([last], list, error, most, strict && error.nil?)
    end

    def through(steps, list = base, error = nil, most = nil, strict = false)
      steps.each do |step|
        list, error = values(step, list, error, most, strict)
      end
      [list, error]
    end

    def values(step, list, error, most, strict)
      raise error if error && step.grid?

      what, argument = step.ending
      cut(step, list, error) do |step, list, error|
        kernel = Kernel.new(step, list, @options, open: !error.nil?)
        list, failed, enough = step.grid? ? [kernel.nested] : kernel.values(needed_of(what, argument, most), strict: strict)
        error = enough ? nil : failed || error
        list = list.drop(argument) if what == :drop
        [most ? list.first(most) : list, error]
      end
    end

    # Runs a step. Its stencils and flat_maps may make it more than one kernel.
    def cut(step, list, error)
      both =
        begin
          return yield(step, list, error)
        rescue Kernel::Cut => cut
          cut.of(step)
        end
      # After the rescue, because an exception from here on has nothing to do with it.
      before, rest = both
      list, failed, enough = cut(before, list, error) { |part, from, open| Kernel.new(part, from, @options, open: !open.nil?).kept }
      begin
        cut(rest, list, enough ? nil : failed || error) { |*parts| yield(*parts) }
      ensure
        [list, *(list.list if list.is_a?(Stencil))].grep(Buffer).each(&:free)
      end
    end

    # How many values of a kernel the host needs to make so many of its own.
    def needed_of(what, argument, most)
      case what
      when :take then [argument, *most].min
      when :drop then most && (most + argument)
      else most
      end
    end

    # The block's value for the {Total} of the chain.
    def total(name)
      list = forced(:to_a) { return to_total(name, plan) { |total| yield(total) } }
      yield(Total.new(list))
    end

    def to_total(name, plan)
      told = ::Ikra.__chain(plan, name)
      *before, last = plan.steps
      list, error = through(before)
      return yield(Total.new(last.bare? ? bare(last, list, error) : listed(last, list, error))) if last.lists?

      cut(last, list, error) { |step, part, failed| yield(total_of(step, part, failed, told)) }
    end

    def total_of(step, list, error, told)
      bounded(step, list, error) do |bounded, failed, to|
        told&.apart(UNBOUNDED) unless bounded
        next Total.new(list, step, error, @options, told) unless bounded
        next Total.new(list, bounded, failed, @options, told, to: to) unless bounded.lists?

        kernel = Kernel.new(bounded, list, @options, open: to.nil? && !failed.nil?, to: to)
        raise failed if failed && !kernel.closed?

        Total.new(kernel.values(nil).first)
      end
    end

    # The values that reach a step which computes nothing.
    def bare(step, list, error)
      kernel = Kernel.new(step, list, @options, open: !error.nil?)
      raise error if error && !kernel.closed?

      kernel.bare
    end

    # All values of the last step.
    def listed(step, list, error)
      list, error = values(step, list, error, nil, error.nil?)
      raise error if error

      list
    end

    # Yields a step that no +take_while+ ends, and the error that follows. Where a +take_while+ ended it, also yields
    # the position of that end. Yields no step where the end cannot be found without the step's values.
    def bounded(step, list, error)
      return yield(step, error, nil) unless step.ended?

      at, failed, looked = Kernel.new(step, list, @options, open: !error.nil?).stop
      return yield(nil) unless looked

      at ? yield(step.unended, failed, at) : yield(step.unended, error, nil)
    end

    UNBOUNDED = "blocks change what they would run for again to find where take_while ends"
    private_constant :UNBOUNDED

    # The first value with the least, or the greatest, value of a block.
    def by(name, reduction, block, &on_list)
      with_key = map_packed(block).__send__(:plan)
      return on_list.call(to_a) if with_key.steps.last.lists? || with_key.steps.last.flat?

      on_list.call(forced(:to_a) { return to_total(name, with_key) { |total| total.by(reduction, &on_list) } })
    end

    # Combines values by an operator.
    def operated(args)
      *start, operator = args
      adds = args.size.between?(1, 2) && [:+, "+"].include?(operator) && start.all?(Integer) && ::Ikra.__scan_of(:+)
      on_list = ->(list) { ::Ikra.__combine(list, :preduce, args, options, nil) }
      adds ? total(:"reduce(:+)") { |total| total.added(start, &on_list) } : on_list.call(to_a)
    end

    def combined(start, block)
      told = ::Ikra.__chain(plan, :reduce)
      *before, last = plan.steps
      list, error = through(before)
      # The block is first tried on some values.
      tried = @options.fetch(:check, ::Ikra.config.check).to_s == "associative"
      folder = Stage.new(:reduce, [], block)
      folded = cut(last, list, error) { |step, *parts| step.ending ? left(step, *parts, start, folder) : chunks(step, *parts, start, folder, told) } unless last.lists? || tried
      list, error = folded || through([last], list, error)
      list = [*start, *list] unless folded
      value = Operation.call(list, :preduce, @options, block)
      raise error if error

      value
    end

    # What a block emits for all values, by the kernel that computes them. nil where they need a list first.
    def emitted(block, form, _options)
      step = plan.steps.first
      return if plan.steps.size > 1 || step.ending || step.ended? || step.stages.any? { |stage| Text::LOOKING.include?(stage.name) }

      ::Ikra.__chain(plan, :map_reduce)
      Kernel.new(step, base, @options).emitted(Stage.new(:emit, [], block), form)
    end

    # What a profile says that it goes over.
    def measured = base

    # How often each value occurs, where the host counts them without a kernel: {OfWords}. It may be given what emits
    # pairs for each.
    #
    # @return [WordCounts, nil]
    def counted_words(_emitter = nil) = nil

    # Each value once, and how often it occurs if that is `wanted`, where one kernel gives a String for each element.
    # The block gets the list of all where the host's own methods serve better. nil where values are of another kind.
    def counted_texts(wanted, &on_list)
      step = plan.steps.first
      return if plan.steps.size > 1 || step.ending || step.ended? || step.sparse? || step.bare? || step.stages.any? { |stage| Text::LOOKING.include?(stage.name) }

      ::Ikra.__chain(plan, :map_reduce)
      Kernel.new(step, base, @options).counted_texts(wanted, &on_list)
    end

    # The result of each chunk, and the error that follows. nil where it is not known where the chain ends, or where
    # nothing is computed first.
    def chunks(step, list, error, start, folder, told)
      bounded(step, list, error) do |bounded, failed, to|
        told&.apart(UNBOUNDED, alone: true) unless bounded
        next if bounded.nil? || bounded.lists?

        kernel = Kernel.new(bounded, list, @options, open: to.nil? && !failed.nil?, to: to)
        sum = kernel.added(start) if ::Ikra.__sums?(folder.block, @options, start)
        folded = sum ? [sum] : kernel.fold(folder, start)
        told&.apart(kernel.given_up, alone: true, ending: bounded.made) unless folded
        [folded, (failed unless kernel.closed?)] if folded
      end
    end

    # The result of each chunk of the values that +take+ or +drop+ leave, if these are numbers. Else the result of all.
    # Also the error that follows.
    def left(step, list, error, start, folder)
      Kernel.new(step, list, @options, open: !error.nil?).left do |parts, failed, enough|
        folded = parts.select { |_, _, count| count.positive? }.flat_map do |values, from, count|
          first, start = start, []
          next [*first, *values[from, count]] unless values.is_a?(Buffer)

          Kernel.part(values, from, count, @options).fold(folder, first)
        end
        [[*start, *folded], enough ? nil : failed || error]
      end
    end
  end
end
