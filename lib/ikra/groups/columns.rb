# frozen_string_literal: true

module Ikra
  class Groups
    # Groups in columns: one for each part of their keys, and one for their values. A second pass reads the columns.
    # Keys become Ruby's objects when they are asked for, and are kept. Pairs are new each time, because callers may
    # change them.
    # @api private
    class Columns
      # What gives a row of a column: a number or an element of an Array, or a part of a text.
      ROWS = ->(list) { ->(i) { ::Ikra.__at(list, i) } }
      TEXTS = ->((text, starts, sizes)) { ->(i) { ::Ikra.__text(text, ::Ikra.__at(starts, i), ::Ikra.__at(sizes, i)) } }
      private_constant :ROWS, :TEXTS

      # @param parts [Array<Buffer, Array>] a column for each part of a key: a buffer or an Array. For Strings: a text,
      #   and two buffers that say where its parts begin and how many bytes they have.
      # @param list [Boolean] whether a key is an Array of its parts. If not, there is one.
      # @param values [Buffer]
      def initialize(parts, list, values)
        @parts = parts
        @list = list
        @values = values
      end

      def size = @values.size

      # All pairs.
      def to_a = all_keys.zip(values)

      # Each key and its value. The Hash is kept, so the caller must not change it.
      def to_h = @to_h ||= to_a.to_h

      def [](key) = to_h[key]

      # The pairs at these places.
      def at(places)
        keys = @all_keys ? places.map { |place| @all_keys[place] } : keys(places)
        keys.zip(places.map { |place| @values[place] })
      end

      def values = @values.to_list

      # A chain over the pairs.
      def chain(options)
        value = ROWS[@values]
        chain = (0...size).plazy(**options)
        one, two, three, four = @parts.map { |part| text?(part) ? TEXTS[part] : ROWS[part] }
        # The blocks differ in how many parts they read: kernels have no number of them.
        return chain.map { |i| [one.call(i), value.call(i)] } unless @list || text?(@parts.first)
        return chain.map { |i| [one.call(i).clone(freeze: true), value.call(i)] } unless @list

        case @parts.size
        when 1 then chain.map { |i| [[one.call(i)], value.call(i)] }
        when 2 then chain.map { |i| [[one.call(i), two.call(i)], value.call(i)] }
        when 3 then chain.map { |i| [[one.call(i), two.call(i), three.call(i)], value.call(i)] }
        else chain.map { |i| [[one.call(i), two.call(i), three.call(i), four.call(i)], value.call(i)] }
        end
      end

      private

      def all_keys = @all_keys ||= keys(nil)

      def text?(part) = part.is_a?(Array) && part.first.is_a?(String)

      # The keys at these places. nil: all.
      def keys(places)
        parts = @parts.map { |part| part(part, places) }
        return parts.first.zip(*parts.drop(1)) if @list

        text?(@parts.first) ? parts.first.each(&:freeze) : parts.first
      end

      def part(part, places)
        return rows(part, places) unless text?(part)

        text, *spans = part
        starts, sizes = spans.map { |span| rows(span, places) }
        starts.zip(sizes).map { |start, count| text.byteslice(start, count) }
      end

      def rows(list, places)
        return places.map { |place| list[place] } if places

        list.is_a?(Buffer) ? list.to_list : list
      end
    end
    private_constant :Columns
  end
end
