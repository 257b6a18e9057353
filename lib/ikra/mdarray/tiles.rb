# frozen_string_literal: true

module Ikra
  class MDArray
    # An expression that does not fit the device's memory, computed stretch by stretch: the elements of its arrays go there in parts, and what
    # they come to is kept on the host.
    #
    # Here: which expressions that is possible for, and the stretches. Not here: kernels; a stretch is an expression as any other.
    # @api private
    module Tiles
      # Stretches are halved until they fit, and are no smaller.
      LEAST = 1 << 14

      class << self
        # @return [Boolean] whether an element depends on one place of each array, and that is the element's own, or the only one
        def possible?(node)
          case node
          when Expression::Scalar then true
          when Expression::Leaf then node.layout.packed? && node.dtype != :object
          else node.operands.nil? || node.operands.all? { |operand| same_form?(node, operand) && possible?(operand) }
          end
        end

        # The values, in a new buffer on the host. Yields a stretch's expression, and gives its buffer.
        #
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def run(node)
          count = node.shape.reduce(1, :*)
          out = Buffer.new(node.dtype, count)
          length, from = (count + 1) / 2, 0
          while from < count
            size = [length, count - from].min
            begin
              values = yield stretch(node, from, size, {}.compare_by_identity)
            rescue DeviceMemoryError
              raise if length <= LEAST

              length = [(length + 1) / 2, LEAST].max
              next
            rescue Located => error
              raise moved(error, from)
            end
            out.store_bytes(from, values.to_bytes)
            values.free
            from += size
          end
          out
        end

        private

        def same_form?(node, operand) = operand.is_a?(Expression::Scalar) || operand.shape == node.shape || single?(operand)

        # Such as the 5 of +5 - array+.
        def single?(node) = node.shape.all?(1)

        # Branches that are shared are one in the stretch, too.
        def stretch(node, from, size, known)
          from, size = 0, 1 if single?(node)
          known[node] ||=
            if node.is_a?(Expression::Scalar) then node
            elsif node.is_a?(Expression::Leaf) || node.operands.nil? then part(node.buffer, node.dtype, from, size)
            else
              operands = node.operands.map { |operand| stretch(operand, from, size, known) }
              Expression::Operation.new(node.name, operands, node.dtype, [size], node.place)
            end
        end

        def part(buffer, dtype, from, size)
          Expression::Leaf.new(Storage.new(Buffer.from_bytes(dtype, buffer.to_bytes(from, size)), dtype), Layout.packed([size]))
        end

        # An error of a stretch, told with the element's index.
        def moved(error, from)
          error.instance_variable_set(:@ikra, Position.new(error.ikra.index + from, error.ikra.tick).freeze)
          error
        end
      end
    end
    private_constant :Tiles
  end
end
