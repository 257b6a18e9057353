# frozen_string_literal: true

module Ikra
  class MDArray
    # Some of an expression's elements, as an expression of their own: of its arrays, only what they are computed from goes to the device.
    #
    # Here: which expressions have such, and where they can be cut. Not here: how many elements are computed at once ({Tiles}).
    # @api private
    module Stretch
      class << self
        # @return [Boolean] whether an element depends on one place of each array
        def possible?(node)
          case node
          when Expression::Scalar then true
          when Expression::Leaf then node.dtype != :object
          else node.operands.nil? || node.operands.all? { |operand| possible?(operand) }
          end
        end

        # @return [Integer] so many elements, or a multiple of them, are cut off: whole rows where elements do not lie as they are numbered
        def unit(node) = flat?(node) ? 1 : row(node.shape)

        # So many elements from one on, both multiples of the unit.
        def of(node, from, size)
          return flat(node, from, size, {}.compare_by_identity) if flat?(node)

          row = row(node.shape)
          rows(node, node.shape.size, from / row, size / row, {}.compare_by_identity)
        end

        # Elements of a row: of all dimensions but the outermost.
        def row(shape) = shape.drop(1).reduce(1, :*)

        private

        # Whether the place of an element of each array is the element's own number, or the only one.
        def flat?(node)
          case node
          when Expression::Scalar then true
          when Expression::Leaf then node.layout.in_order?
          else node.operands.nil? || node.operands.all? { |operand| same_form?(node, operand) && flat?(operand) }
          end
        end

        def same_form?(node, operand) = operand.is_a?(Expression::Scalar) || operand.shape == node.shape || single?(operand)

        def single?(node) = node.shape.all?(1)

        # Branches that are shared are one in the stretch, too.
        def flat(node, from, size, known)
          from, size = 0, 1 if single?(node)
          known[node] ||=
            if node.is_a?(Expression::Scalar) then node
            elsif node.is_a?(Expression::Leaf) then leaf(node.buffer.part(node.layout.offset + from, size), node.dtype, [size])
            elsif node.operands.nil? then leaf(node.buffer.part(from, size), node.dtype, [size])
            else operation(node, node.operands.map { |operand| flat(operand, from, size, known) }, [size])
            end
        end

        # Some of the rows that the outermost of so many dimensions has; all of what is repeated along it.
        def rows(node, rank, from, count, known)
          return node if node.is_a?(Expression::Scalar)

          from, count = 0, node.shape.first if node.shape.size < rank || node.shape.first == 1
          known[node] ||=
            if node.is_a?(Expression::Operation) && node.operands
              operation(node, node.operands.map { |operand| rows(operand, rank, from, count, known) }, [count, *node.shape.drop(1)])
            else
              layout = (node.is_a?(Expression::Leaf) ? node.layout : Layout.packed(node.shape)).part(0, from, count)
              leaf(node.buffer.gather(layout.offset, layout.shape, layout.strides), node.dtype, layout.shape)
            end
        end

        def leaf(buffer, dtype, shape) = Expression::Leaf.new(Storage.new(buffer, dtype), Layout.packed(shape))

        def operation(node, operands, shape) = Expression::Operation.new(node.name, operands, node.dtype, shape, node.place)
      end
    end
    private_constant :Stretch
  end
end
