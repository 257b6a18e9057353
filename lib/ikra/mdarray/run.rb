# frozen_string_literal: true

module Ikra
  class MDArray
    # One call of an iterator: the sections that it runs, with the block of the caller.
    #
    # A section goes over positions, row after row. It runs the block within methods of the prelude
    # (+ext/ikra-core/src/prelude/mdarray.rb+). These get lambdas that compute an element from its position ({Text}). So
    # an expression is computed where its elements are used.
    # @api private
    class Run
      # The number of elements that are combined one after the other. The order of all combinations depends only on this
      # number.
      CHUNK = 256
      # `precision:` is for users' blocks. Ikra's own blocks and texts compute in 64 bits, or round explicitly.
      EXACT = { precision: :f64 }.freeze
      # A section without options.
      NOTHING = {}.freeze
      # The options of a section whose values are of a kind, and the option for each reduction of them.
      INTO = DType::SIZES.keys.to_h { |dtype| [dtype, { **EXACT, __into: dtype }.freeze] }.freeze
      REDUCE = %i[sum min max minmax count].to_h { |operation| [operation, { __reduce: operation }.freeze] }.freeze
      # A section whose block runs in no other method.
      NOWHERE = [].freeze
      # The methods that make elements of values, by kind.
      AS = (DType::SIZES.keys + %i[object]).to_h { |dtype| [dtype, [:"as_#{dtype}"].freeze] }.freeze

      attr_reader :name, :options

      # A run with a block of Ikra's own.
      def self.own(name, options = {}, &block) = new(name, options, block, EXACT)

      def initialize(name, options, block, more = nil)
        Ikra.__check(options) unless options.empty?
        @name = name
        @options = more ? { **options, **more } : options
        @block = block
      end

      # Runs the sections of its block. +break+ in the user's block ends them all.
      def ending(&sections) = catch(self, &sections)

      # The same run with a block of Ikra's own.
      def with(&block) = Run.own(@name, @options, &block)

      # The block's values in a new buffer.
      #
      # @param dtype [Symbol, nil] the kind of the buffer; nil: that of the values
      # @param shape the shape for the index of an error
      # @param within the methods that pass the block its arguments
      # @param later [Boolean] whether an exception may be raised later, when the values are read ({ErrorCallback})
      # @param pieces [MDArray, Array<MDArray>, Rows, nil] arrays whose elements are the block's only arguments, or
      #   Rows, which give its other arguments. With these, the values can be computed stretch by stretch where memory
      #   is too small.
      # @param part [Boolean] whether this is a part of the work. Then a block that depends on where elements are is
      #   refused.
      def values(count, dtype, shape, within = NOWHERE, base: 0...count, later: false, pieces: nil, part: false)
        return [Buffer.new(dtype || :f64, 0), dtype || :f64] if count.zero?

        within = [AS.fetch(dtype), *within] if dtype
        # An exception must be known at once where plain Ruby may have to run.
        later &&= @options.fetch(:unsupported, Ikra.config.unsupported).to_s != "ruby"
        into = later ? { __into: dtype || true, __error_callback: ErrorCallback.new(within, shape) } : { __into: dtype || true }
        into[:__piece] = true if part
        buffer =
          begin
            section(:map, base, within, shape, into)
          rescue DeviceMemoryError => error
            raise unless pieces

            pieces.is_a?(Rows) ? in_rows(error, pieces, dtype, shape, into) : in_pieces(error, pieces, within, shape, into)
          end
        [buffer, buffer.dtype]
      end

      # The block's values without holes, side by side, in a new buffer.
      def present(count, dtype, *within)
        return Buffer.new(dtype, 0) if count.zero?

        values = section(:map, 0...count, within, nil, { __into: dtype, __holes: true })
        values.is_a?(Buffer) ? values : Buffer.from_list(dtype, values - [Hole])
      end

      # The reduction of the block's values (`Ikra.__reduce`), which are not stored.
      def reduction(count, operation, *within, base: 0...count, pieces: nil)
        reduce = { __into: true, __reduce: operation }
        value =
          begin
            section(:map, base, within, nil, reduce)
          rescue DeviceMemoryError => error
            raise unless pieces
            return counted(error, pieces, within) if operation == :count

            in_pieces(error, pieces, within, nil, { __into: true })
          end
        return value unless value.is_a?(Buffer)

        operation == :sum ? MDArray.__of(value, value.dtype, [count]).sum(**@options) : Ikra.__reduce(value, operation, 0, count, @options)
      end

      # The block's values as Ruby's.
      def objects(count, *within, base: 0...count) = count.zero? ? [] : section(:map, base, within)

      # What the block emits for all elements. `form`: `__pairs` or `__groups` of `Ikra.__section`.
      def emitted(count, form, *within, base: 0...count)
        count.zero? ? [] : section(:map, base, [*within, [Reducing.giver(form)]], nil, form)
      rescue Tiles::Refused
        raise unless form[:__tables]
      end

      # Runs the block for its effects.
      def each(count, *within, base: 0...count) = count.zero? ? nil : section(:each, base, within)

      # The number of the first element for which the block is true, or false where that is wanted. nil: there is none.
      def find(count, wanted, *within, base: 0...count, pieces: nil)
        return if count.zero?

        within = [[wanted ? :truth : :falsity], *within]
        index = section(:find, base, within)
        index if index.is_a?(Integer)
      rescue DeviceMemoryError => error
        raise unless pieces

        by_stretches(error, pieces, pieces.shape) do |node|
          Tiles.find(node) { |stretch| section(:find, positions(stretch), [*within[0...-1], [:computed, element_of(stretch)]], nil, { __piece: true }) }
        end
      end

      # Combines the elements along a dimension with the block, in chunks, until one is left.
      #
      # @param at [Proc] the element at a position
      # @param outer [Integer] the number of elements around the dimension; +length+ along it, +inner+ within it
      # @return [Array(Buffer, Symbol)] a value for each of the elements around and within
      def fold(at, outer, length, inner, dtype = nil)
        shape = [outer, length, inner]
        loop do
          buffer, kind = fold_chunks(at, outer, length, inner, dtype, shape)
          length = (length + CHUNK - 1) / CHUNK
          return [buffer, kind] if length == 1

          at = Text.element(buffer, kind)
        end
      end

      # The combined value of each chunk along a dimension.
      #
      # @param dtype of the result, where it is that of the whole
      # @param part [Boolean] whether this is a part of an array that does not fit the device's memory
      def fold_chunks(at, outer, length, inner, dtype, shape, part: false)
        chunks = (length + CHUNK - 1) / CHUNK
        values(outer * chunks * inner, (dtype if chunks == 1), shape, [[:fold_at, at, length, chunks, inner, CHUNK]], part: part)
      end

      # All intermediate values of {#fold}.
      #
      # @param part (see #fold_chunks)
      def scan(at, outer, length, inner, part: false)
        chunks = (length + CHUNK - 1) / CHUNK
        totals, dtype = fold_chunks(at, outer, length, inner, nil, [outer, chunks, inner], part: part)
        totals, = scan(Text.element(totals, dtype), outer, chunks, inner, part: part) if chunks > 1
        out = Buffer.new(dtype, outer * length * inner)
        each(outer * chunks * inner, [:scan_at, at, totals, out, length, chunks, inner, CHUNK])
        [out, dtype]
      end

      class << self
        # The values of an expression in a new buffer.
        #
        # @param alone [Boolean] whether nothing else is computed with it
        def expression(node, alone: false)
          count = node.size
          return Buffer.new(node.dtype, 0) if count.zero?

          Expression.settle(node)
          form = Text.form(node, node.shape, :section)
          others = Expression::Together.others(node, form.first) unless alone || node.count == 1
          if others
            found = together(node, form.first, others) and return found

            # What the others need may be stored by now.
            form = Text.form(node, node.shape, :section)
          end
          located(node) do
            section_of(node, NOTHING, form)
          rescue DeviceMemoryError
            raise if count <= Tiles::MIN_STRETCH || !Stretch.possible?(node)

            Tiles.run(count, Stretch.unit(node)) { |from, size| section_of(Stretch.of(node, from, size), { __error_callback: Tiles }) }
          end
        end

        # The values of an expression, by a kernel that also computes others which share operators with it. nil: there
        # is no such kernel.
        #
        # @param key [String] of the expression's text
        def together(node, key, others)
          Expression.settle_others(others, node.seen)
          group = Expression::Together::Group.new([node, *others])
          form = Text.form(group, node.shape, :section)
          return unless Expression::Together.try(key, form.first, others)

          buffers = others.map { |other| Buffer.new(other.dtype, node.size) }
          block = Text.block_of(form, group, node.shape, :section, buffers)
          buffer = Ikra.__section(:mdarray, :map, 0...node.size, 1, INTO.fetch(node.dtype), block, nil)
          others.zip(buffers) { |other, computed| other.compute(computed) }
          buffer
        rescue NoMemoryError, DeviceMemoryError
          nil
        end

        # The reduction of the values of an expression (`Ikra.__reduce`), which are not stored.
        def reduction(node, operation, options)
          count = node.size
          Expression.settle(node)
          more = REDUCE.fetch(operation)
          more = { **options, **more } unless options.empty?
          value = located(node) do
            section_of(node, more)
          rescue DeviceMemoryError
            raise if count <= Tiles::MIN_STRETCH || !Stretch.possible?(node)
            if Tiles.reduces?(operation, node.dtype)
              next Tiles.reduce(node, operation) { |stretch| reduced(section_of(stretch, more), operation, options) }
            end

            Tiles.run(count, Stretch.unit(node)) { |from, size| section_of(Stretch.of(node, from, size), { **options, __error_callback: Tiles }) }
          end
          reduced(value, operation, options)
        end

        # The reduction that a section left. Where it left the values instead, because it computes them in another
        # order, their reduction.
        def reduced(left, operation, options) = left.is_a?(Buffer) ? Ikra.__reduce(left, operation, 0, left.size, options) : left

        # Adds to an exception where the program wrote the operator that raises, and the index of the element.
        def located(node)
          yield
        rescue Located => error
          line = line_in_text(error)
          place = line && Text.place(node, node.shape, line)
          error.set_backtrace([place, *error.backtrace.drop(1)]) if place
          raise unless error.is_a?(Unfit)

          raise unfit(error, node.shape)
        end

        # The line of a text where an error was raised.
        def line_in_text(error) = error.backtrace&.first.to_s[/\A#{Regexp.escape(Text::FILE)}:(\d+)/, 1]&.to_i

        # The values in one section.
        def section_of(node, more = NOTHING, form = Text.form(node, node.shape, :section))
          options = INTO.fetch(node.dtype)
          # Options of the caller do not change the precision.
          options = more.merge(options) unless more.empty?
          Ikra.__section(:mdarray, :map, 0...node.size, 1, options, Text.block_of(form, node, node.shape, :section), nil)
        end

        # The error for a value that does not fit, with the index of the element, as {DType.store} raises it.
        def unfit(error, shape)
          place = Layout.packed(shape).indices(error.ikra.index)
          unfit =
            case error.message
            when /\A(-?Infinity|NaN) / then FloatDomainError.new("element #{place}: #{Regexp.last_match(1)}")
            when /\A(\S+[.e]\S*) (.*)/ then RangeError.new("element #{place}: #{DType.shown(Float(Regexp.last_match(1)).truncate)} #{Regexp.last_match(2)}")
            when /is not a number\z/ then TypeError.new("element #{place}: #{error.message}")
            else RangeError.new("element #{place}: #{error.message}")
            end
          unfit.extend(Located)
          unfit.instance_variable_set(:@ikra, error.ikra)
          unfit.set_backtrace(error.backtrace)
          unfit
        end
      end

      private

      # The number of elements for which the block is true, stretch by stretch.
      def counted(error, array, within)
        by_stretches(error, array, array.shape) do |node|
          Tiles.reduce(node, :count) do |stretch|
            part = [*within[0...-1], [:computed, element_of(stretch)]]
            Run.reduced(section(:map, positions(stretch), part, nil, { __into: true, __reduce: :count, __piece: true }), :count, @options)
          end
        end
      end

      # The block's values for the elements of an array, stretch by stretch, because memory is too small to compute them
      # at once. The last of the methods passes the elements to the block.
      def in_pieces(error, arrays, within, shape, into)
        by_stretches(error, arrays, shape || arrays.shape) do |node|
          Tiles.run(node.shape.reduce(1, :*), Stretch.unit(node)) do |from, size|
            stretch = Stretch.of(node, from, size)
            several = arrays.is_a?(Array)
            elements = (several ? stretch.operands : [stretch]).map { |part| element_of(part, stretch.shape) }
            handed = [several ? :"computed_#{arrays.size}" : :computed, *elements]
            section(:map, positions(stretch), [*within[0...-1], handed], nil, { **into, __error_callback: Tiles, __piece: true })
          end
        end
      end

      # The same, some rows at a time, for values that depend on where an element is.
      def in_rows(error, rows, dtype, shape, into)
        as = dtype ? [AS.fetch(dtype)] : NOWHERE
        possible(error, shape) do
          row = Stretch.row(shape)
          Tiles.run(shape.reduce(1, :*), row, rows.reach.map { |reach| reach * row }) do |from, size|
            base, handed = rows.handed(from, size)
            section(:map, base, [*as, *handed], nil, { **into, __error_callback: Tiles, __piece: true })
          end
        rescue Located => located
          raise ErrorCallback.new(rows.within, shape).deferred_error(located)
        end
      end

      # Goes over arrays in stretches, if that is possible. Else the error is that of the whole.
      def by_stretches(error, arrays, shape)
        nodes = (arrays.is_a?(Array) ? arrays : [arrays]).map(&:__operand)
        possible(error, shape) do
          node = arrays.is_a?(Array) ? Expression::Operation.new(:combine, nodes, nil, shape) : nodes.first
          raise error unless Stretch.possible?(node)

          yield node
        rescue Located => located
          # The exception of a stretch's own expression is changed to that of the whole.
          raise ErrorCallback.new([nodes.map { |part| element_of(part, shape) }], shape).deferred_error(located)
        end
      ensure
        nodes&.each(&:drop)
      end

      # The error of the whole, where no parts fit, or where the block must run in one section.
      def possible(error, shape)
        raise error unless shape.reduce(1, :*) > Tiles::MIN_STRETCH

        yield
      rescue DeviceMemoryError, Tiles::Refused
        raise error
      end

      # A lambda for the element of an expression, such as a stretch, at a position. The expression may be smaller than
      # the shape.
      def element_of(node, shape = node.shape) = Text.block(node, shape, :lambda)

      # The positions for a section that computes a stretch.
      def positions(stretch) = 0...stretch.shape.reduce(1, :*)

      def section(kind, base, within, shape = nil, into = NOTHING)
        options = @options.empty? ? into : @options.merge(into)
        left = Ikra.__section(@name, kind, base, 1, options, @block, within)
        return left if left.is_a?(Buffer)

        how, value, = left
        throw(self, value) if how == :left
        raise Tiles::Refused if how == :refused
        kind == :find && how != :found ? nil : value
      rescue Located => error
        raise ErrorCallback.new(within, shape).deferred_error(error) unless error.is_a?(CompileError)

        fallen(error, kind, base, within, into)
      rescue CompileError => error
        fallen(error, kind, base, within, into)
      end

      # The result of plain Ruby in place of a section, where the user asked for that.
      def fallen(error, kind, base, within, into)
        value = Fallback.run(error, @options) { Around.new(@block, within).public_send(kind, base) }
        into.empty? ? value : stored(into[:__holes] ? value - [Hole] : value, into[:__into])
      end

      # The result of plain Ruby, in the form of a section's result.
      def stored(list, dtype)
        dtype = DType.of(list.first) if dtype.equal?(true)
        return Buffer.from_list(dtype, list) if dtype != :object && list.all? { |value| DType.of(value) == DType.of(list.first) }

        raise TypeError, "the block gives values of several kinds, or of one that arrays of numbers cannot hold: " \
                         "#{list.map(&:class).uniq.first(4).join(", ")}; say what is meant with dtype:"
      end
    end
    private_constant :Run

    # Makes the exception that a section raised ready for the user, now or when its result is read.
    # @api private
    class ErrorCallback
      # @param within the arguments of the section, with lambdas that compute elements
      # @param shape the shape for the index of an error
      def initialize(within, shape)
        @within = within
        @shape = shape
      end

      # @return [Exception]
      def deferred_error(error)
        # An expression raises as if it had been computed before.
        expressions.each { |node| Run.expression(node) }
        error.is_a?(Unfit) && @shape ? Run.unfit(error, @shape) : error
      rescue Located => first
        first
      end

      private

      # The expressions that the lambdas compute.
      def expressions
        @within.flat_map { |method| method.grep(Proc).filter_map { |lambda| lambda.instance_variable_get(:@expression) } }.flatten.grep(Expression::Operation)
      end
    end
    private_constant :ErrorCallback
  end
end
