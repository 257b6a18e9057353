# frozen_string_literal: true

module Ikra
  class MDArray
    # What does not fit the device's memory, computed stretch by stretch: the elements of arrays go there in parts, and what they come to is kept on the
    # host. While the device computes one stretch, the next goes up; then what the first came to comes down.
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
          when Expression::Leaf then node.layout.in_order? && node.dtype != :object
          else node.operands.nil? || node.operands.all? { |operand| same_form?(node, operand) && possible?(operand) }
          end
        end

        # The values, in a new buffer on the host. Yields a stretch's expression, and gives its buffer, which the device may still be computing.
        #
        # @raise [DeviceMemoryError] where the least stretch does not fit
        def run(node)
          count = node.shape.reduce(1, :*)
          length, from, out, waiting = (count + 1) / 2, 0, nil, nil
          while from < count
            size = [length, count - from].min
            part = stretch(node, from, size, {}.compare_by_identity)
            begin
              values = yield part
            rescue DeviceMemoryError
              if waiting
                # it holds memory
                waiting = store(out, *waiting)
              else
                raise if length <= LEAST

                length = [(length + 1) / 2, LEAST].max
              end
              next
            rescue Located => error
              # what comes first is told first
              store(out, *waiting) if waiting
              raise moved(error, from)
            end
            out ||= Buffer.new(values.dtype, count)
            store(out, *waiting) if waiting
            waiting = [from, values]
            from += size
          end
          store(out, *waiting)
          out
        end

        # Tells later what a stretch raised: it is told as that of the whole.
        def told(error) = error

        private

        def store(out, from, values)
          out.store_part(values, from, [values.size], [1])
          values.free
          nil
        rescue Located => error
          raise moved(error, from)
        end

        def same_form?(node, operand) = operand.is_a?(Expression::Scalar) || operand.shape == node.shape || single?(operand)

        # Such as the 5 of +5 - array+.
        def single?(node) = node.shape.all?(1)

        # Branches that are shared are one in the stretch, too.
        def stretch(node, from, size, known)
          from, size = 0, 1 if single?(node)
          known[node] ||=
            if node.is_a?(Expression::Scalar) then node
            elsif node.is_a?(Expression::Leaf) then part(node.buffer, node.dtype, node.layout.offset + from, size)
            elsif node.operands.nil? then part(node.buffer, node.dtype, from, size)
            else
              operands = node.operands.map { |operand| stretch(operand, from, size, known) }
              Expression::Operation.new(node.name, operands, node.dtype, [size], node.place)
            end
        end

        def part(buffer, dtype, from, size)
          Expression::Leaf.new(Storage.new(buffer.part(from, size), dtype), Layout.packed([size]))
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
