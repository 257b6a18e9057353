# frozen_string_literal: true

module Ikra
  class MDArray
    # A section as plain Ruby, for users who asked for that where kernels cannot run a block. Here are the methods of
    # the prelude (+prelude/mdarray.rb+, +prelude/operations.rb+). Each runs in the block of the one before.
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
        return call(at, element) if name.nil?

        __send__(plain(name), name, given, at) { |*values| values.empty? ? run(element, at, inner) : call(at, *values) }
      end

      # `stencil_5_2`, `fold_at` and `as_u8` without their suffixes.
      def plain(name) = name.start_with?("as_") ? :as : name.to_s.sub(/(_at)?(_\d+)*\z/, "")

      def call(at, *values)
        Thread.current[:__ikra_position] = Position.new(at, 0)
        @block.call(*values)
      end

      def as(name, _, _)
        dtype = name.to_s.delete_prefix("as_").to_sym
        DType.store(dtype, dtype == :bool ? (yield ? true : false) : yield)
      end

      def truth(*) = yield ? true : false

      def falsity(*) = yield ? false : true

      def computed(_, given, at) = yield(*given.map { |element| element.call(at) })

      def stored(_, (list), at) = yield(list[at])

      def selected(_, (element, hole), at)
        x = element.call(at)
        yield(x) ? x : hole
      end

      def rejected(_, (element, hole), at)
        x = element.call(at)
        yield(x) ? hole : x
      end

      def cells(_, given, at) = yield(*indices(at, given))

      def indexed(_, given, at) = yield(given.first.call(at), *indices(at, given.drop(1)))

      def begun(_, given, at) = yield(given.last, given.first.call(at))

      def fold(_, (element, *sizes), at, &block) = chunk(at, *sizes).map { |place| element.call(place) }.reduce(&block)

      def scan(_, (element, totals, out, *sizes), at)
        inner = sizes[2]
        places = chunk(at, *sizes)
        first = (at / inner % sizes[1]).zero?
        memo = nil
        places.each_with_index do |place, number|
          memo = number.zero? ? element.call(place) : yield(memo, element.call(place))
          out[place] = number == places.size - 1 ? totals[at] : first ? memo : yield(totals[at - inner], memo)
        end
      end

      def neighbours(name, (list, fill, *numbers), at)
        dimensions = name[/\d+/].to_i
        reaches = numbers.first(3 * dimensions)
        inside?(at, numbers.drop(reaches.size)) ? yield(Neighbours.new(list, at, dimensions, *reaches)) : fill
      end

      def stencil(name, given, at) = stencil_list(name, given, at) { |values| yield(*values) }

      def stencil_list(name, (list, fill, *numbers), at)
        count = name[/\d+/].to_i
        inside?(at, numbers.drop(count)) ? yield(numbers.first(count).map { |offset| list[at + offset] }) : fill
      end

      # Indices from a position and all sizes but the first.
      def indices(at, sizes)
        rest = sizes.reverse.map do |size|
          at, index = at.divmod(size)
          index
        end
        [at, *rest.reverse]
      end

      # Positions of the elements of a chunk.
      def chunk(at, length, chunks, inner, width)
        outer, number, within = indices(at, [chunks, inner])
        first = number * width
        ([first + width, length].min - first).times.map { |k| (((outer * length) + first + k) * inner) + within }
      end

      # Whether all neighbours are inside, by the bounds of +Stencil+. These are three numbers for each dimension, but
      # only two for the first.
      def inside?(at, bounds)
        sizes = bounds.first(bounds.size / 3)
        indices(at, sizes).zip(bounds.drop(sizes.size).each_slice(2)).all? { |index, (from, below)| index >= from && index < below }
      end
    end
    private_constant :Around
  end
end
