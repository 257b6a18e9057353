# frozen_string_literal: true

module Ikra
  class MDArray
    # One call of an iterator: the sections that it runs, with the block of the one who called.
    #
    # A section goes over positions, row after row. It runs the block within methods of the prelude
    # (+ext/ikra-core/src/prelude/mdarray.rb+), given lambdas that compute an element from its position ({Text}), so an
    # expression is computed where it is looked at.
    # @api private
    class Run
      # Elements that are combined one after the other; the order of what is combined depends on this number alone.
      CHUNK = 256

      def initialize(name, options, block)
        Ikra.__check(options) unless options.empty?
        @name = name
        @options = options
        @block = block
      end

      # Runs the sections that it yields for; +break+ in the block ends them all.
      def ending(&sections) = catch(self, &sections)

      # The same with another block.
      def with(&block) = Run.new(@name, @options, block)

      # The block's values in a new buffer.
      #
      # @param dtype [Symbol, nil] of the buffer; nil: what the values are
      # @param shape what an error's index is told in
      def values(count, dtype, shape, *within, base: 0...count)
        return [Buffer.new(dtype || :f64, 0), dtype || :f64] if count.zero?

        within = [[:"as_#{dtype}"], *within] if dtype
        buffer = Run.located(shape) { section(:map, base, within, into: dtype || true) }
        [buffer, buffer.dtype]
      end

      # The block's values as they are.
      def objects(count, *within, base: 0...count) = count.zero? ? [] : section(:map, base, within)

      # Runs the block for what it does.
      def each(count, *within, base: 0...count) = count.zero? ? nil : section(:each, base, within)

      # The number of the first element for which the block is true, or false where that is wanted; nil: none.
      def find(count, wanted, *within, base: 0...count)
        return if count.zero?

        index = section(:find, base, [[wanted ? :truth : :falsity], *within])
        index if index.is_a?(Integer)
      end

      # Combines the elements along a dimension with the block, in chunks, until one is left.
      #
      # @param at [Proc] the element at a position
      # @param outer, length, inner [Integer] numbers of elements around, along, and within the dimension
      # @return [Array(Buffer, Symbol)] a value for each of the elements around and within
      def fold(at, outer, length, inner, dtype = nil)
        shape = [outer, length, inner]
        loop do
          chunks = (length + CHUNK - 1) / CHUNK
          buffer, kind = values(outer * chunks * inner, (dtype if chunks == 1), shape, [:fold_at, at, length, inner, CHUNK])
          return [buffer, kind] if chunks == 1

          length = chunks
          at = Text.element(buffer, kind)
        end
      end

      # All values on the way of {#fold}.
      def scan(at, outer, length, inner)
        chunks = (length + CHUNK - 1) / CHUNK
        totals, dtype = values(outer * chunks * inner, nil, [outer, chunks, inner], [:fold_at, at, length, inner, CHUNK])
        totals, = scan(Text.element(totals, dtype), outer, chunks, inner) if chunks > 1
        out = Buffer.new(dtype, outer * length * inner)
        each(outer * chunks * inner, [:scan_at, at, totals, out, length, inner, CHUNK])
        [out, dtype]
      end

      class << self
        # The values of an expression in a new buffer.
        def expression(node)
          count = node.shape.reduce(1, :*)
          return Buffer.new(node.dtype, 0) if count.zero?

          block = Text.block(node, node.shape, :section)
          located(node.shape) { Ikra.__section(:mdarray, :map, 0...count, 1, { into: node.dtype }, block, nil) }
        end

        # Tells where the value is that does not fit.
        def located(shape)
          yield
        rescue Unfit => error
          number = error.ikra.index
          place = Layout.packed(shape).indices(number)
          told = RangeError.new("element #{place}: #{error.message}")
          told.extend(Located)
          told.instance_variable_set(:@ikra, error.ikra)
          told.set_backtrace(error.backtrace)
          raise told
        end
      end

      private

      def section(kind, base, within, **into)
        how, value, = Ikra.__section(@name, kind, base, 1, @options.merge(into), @block, within)
        throw(self, value) if how == :left
        kind == :find && how != :found ? nil : value
      rescue CompileError => error
        value = Fallback.run(error, @options) { Around.new(@block, within).public_send(kind, base) }
        into.empty? ? value : stored(value, into[:into])
      end

      # What plain Ruby gave, as a section gives it.
      def stored(list, dtype)
        dtype = DType.of(list.first) if dtype == true
        return Buffer.from_list(dtype, list) if dtype != :object && list.all? { |value| DType.of(value) == DType.of(list.first) }

        raise TypeError, "the block gives values of several kinds, or of one that arrays of numbers cannot hold: " \
                         "#{list.map(&:class).uniq.first(4).join(", ")}; say what is meant with dtype:"
      end
    end
    private_constant :Run

    # A section as plain Ruby, for those who ask for that where kernels cannot run a block: what the methods of the prelude do.
    # @api private
    class Around
      def initialize(block, within)
        @block = block
        @within = within
      end

      def map(base) = base.each_with_index.map { |element, at| run(element, at, @within) }

      def each(base)
        map(base)
        base
      end

      def find(base) = base.each_with_index.find { |element, at| run(element, at, @within) }&.last

      private

      def run(element, at, within)
        (name, *given), *inner = within
        if name.nil?
          Thread.current[:__ikra_position] = Position.new(at, 0)
          return @block.call(*element)
        end
        around(name.to_s, given, at) { |*values| inner.empty? && !values.empty? ? @block.call(*values) : run(values.empty? ? element : values, at, inner) }
      end

      def around(name, given, at)
        case name
        when /\Aas_(.+)/ then DType.store($1.to_sym, $1 == "bool" ? (yield ? true : false) : yield)
        when "truth" then yield ? true : false
        when "falsity" then yield ? false : true
        when /\Acomputed/ then yield(*given.map { |element| element.call(at) })
        when /\Acells/ then yield(*cells(at, given))
        when /\Aindexed/ then yield(given.first.call(at), *cells(at, given.drop(1)))
        when "begun" then yield(given.last, given.first.call(at))
        else raise CompileError, "#{name.tr("_", " ")} has no plain form"
        end
      end

      def cells(at, sizes)
        indices = sizes.reverse.map do |size|
          index = at % size
          at /= size
          index
        end
        [at, *indices.reverse]
      end
    end
    private_constant :Around
  end
end
