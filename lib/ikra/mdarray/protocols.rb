# frozen_string_literal: true

module Ikra
  # Ruby's common protocols: comparison, display, Marshal. Display moves no large array from the device.
  class MDArray
    # Stands for elements that are not shown.
    MORE = Object.new
    # @private
    def MORE.inspect = "…"
    # @private
    def MORE.pretty_print(printer) = printer.text(inspect)
    private_constant :MORE

    # The most elements of an array on the device that are copied to show them.
    MAX_SHOWN_ELEMENTS = 64

    # The elements as arrays within arrays.
    #
    # @return [Array]
    def to_a = Ikra.__measured(:to_a, self) { Operation.nested(flat_list, shape) }

    # @return [Array] all elements, row after row
    def to_flat_a = flat_list

    # @param count [Integer, nil]
    # @return [Object, nil, Array] the first element, row after row, or the first +count+ elements
    def first(*count)
      unless count.empty?
        number = Operation.integer(count.first)
        raise ArgumentError, "attempt to take negative size" if number.negative?

        return flatten[0...number].to_a
      end
      empty? ? nil : flatten[0]
    end

    # Whether another array has the same shape and equal elements; 1 equals 1.0.
    #
    # @return [Boolean]
    def ==(other)
      return true if equal?(other) && !DType.float?(dtype)
      return false unless other.is_a?(MDArray) && shape == other.shape
      return true if empty?
      return flat_list == other.__send__(:flat_list) if [dtype, other.dtype].include?(:object)
      return false if (dtype == :bool) != (other.dtype == :bool)

      eq(other).all? { |same| same }
    end

    # Whether another array has the same shape, kind and elements, to the last bit.
    #
    # @return [Boolean]
    def eql?(other) = equal?(other) || (other.is_a?(MDArray) && shape == other.shape && dtype == other.dtype && same_bits?(other))

    # @return [Integer] equal for arrays that are +eql?+
    def hash = [MDArray, dtype, shape, dtype == :object ? flat_list : to_bytes].hash

    # Shape, kind and place; and the first elements, if they are on the host or few.
    #
    # @return [String]
    def inspect
      return "#<#{self.class} uninitialized>" unless made?
      return "#<#{self.class} freed>" if freed?

      "#<#{self.class} #{shape.join("×")} #{dtype}, #{standing}#{": #{elements_shown}" if shown?}>"
    end
    alias to_s inspect

    # The same, with a line for each row.
    def pretty_print(printer)
      return printer.text(inspect) if !made? || freed? || !shown?

      printer.group(1, "#<#{self.class} #{shape.join("×")} #{dtype}, #{standing}:", ">") do
        rows = excerpt
        printer.breakable
        printer.pp(rows)
      end
    end

    # For IRuby: a table of the first elements, if they are on the host or few.
    #
    # @return [String]
    def to_html
      heading = "<p>MDArray #{shape.join("×")} #{dtype}, #{standing}</p>"
      return heading if freed? || !shown? || ndim > 2 || empty?

      rows = ndim == 1 ? [excerpt] : excerpt
      cells = rows.map { |row| "<tr>#{Array(row).map { |value| "<td>#{escaped(value)}</td>" }.join}</tr>" }
      "#{heading}<table>#{cells.join}</table>"
    end

    # @return [Array(String, String)] what IRuby shows
    def to_iruby = ["text/html", to_html]

    # @api private
    def marshal_dump = [1, dtype, shape, dtype == :object ? flat_list : to_bytes]

    # @api private
    def marshal_load((_, dtype, shape, elements))
      dtype = DType.check(dtype)
      shape = MDArray.__shape(shape)
      size, left = dtype == :object ? elements.size : elements.bytesize.divmod(DType::SIZES.fetch(dtype))
      raise ArgumentError, "there are #{size} elements for shape #{shape.inspect}" unless size == shape.reduce(1, :*) && left.to_i.zero?

      __set(Storage.new(dtype == :object ? elements : Buffer.from_bytes(dtype, elements), dtype), Layout.packed(shape))
    end

    private

    def same_bits?(other) = dtype == :object ? flat_list.eql?(other.__send__(:flat_list)) : to_bytes == other.to_bytes

    def standing
      return "freed" if freed?

      at = place
      return at.to_s if %i[pending poisoned].include?(at)

      "on the #{at == :both ? "host and the device" : at}"
    end

    # Where the elements are. For few elements it also finds out whether their computation failed.
    def place
      at = where
      return at unless at == :device && size <= MAX_SHOWN_ELEMENTS

      @storage.buffer.poisoned? ? :poisoned : at
    end

    def shown?
      return false if pending?

      at = place
      at != :poisoned && (at != :device || size <= MAX_SHOWN_ELEMENTS)
    end

    # The first elements of each dimension, in arrays within arrays, with a mark where there are more.
    def excerpt(layout = @layout)
      return @storage.buffer[layout.offset] if layout.rank.zero?

      count = [layout.shape.first, SHOWN].min
      shown = Array.new(count) { |index| excerpt(layout.part(0, index, nil)) }
      layout.shape.first > count ? shown << MORE : shown
    end

    def made? = !(@storage.nil? && @pending.nil?)

    # An array of objects may be one of its own elements.
    def elements_shown
      shown = Thread.current[:__ikra_shown] ||= {}.compare_by_identity
      return "[...]" if shown[self]

      begin
        shown[self] = true
        text_of(excerpt)
      ensure
        shown.delete(self)
      end
    end

    def text_of(shown)
      return shown.inspect unless shown.is_a?(Array)

      "[#{shown.map { |part| text_of(part) }.join(", ")}]"
    end

    def escaped(value) = value.inspect.gsub(/[&<>]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;")
  end
end
