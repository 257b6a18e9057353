# frozen_string_literal: true

module Ikra
  class MDArray
    # A range of an expression's elements, as an expression of its own. Of its arrays, only the elements that it reads
    # go to the device.
    #
    # Here: which expressions can be cut, and where. Not here: how many elements are computed at once ({Tiles}).
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

        # @return [Integer] the unit of stretches, in elements. These are whole rows where elements are not stored in
        #   the order of their numbers.
        def unit(node) = flat?(node) ? 1 : row(node.shape)

        # The stretch of +size+ elements from +from+ on. Both are multiples of the unit.
        def of(node, from, size)
          return flat(node, from, size, {}.compare_by_identity) if flat?(node)

          row = row(node.shape)
          rows(node, node.shape.size, from / row, size / row, {}.compare_by_identity)
        end

        # Elements of a row: of all dimensions but the outermost.
        def row(shape) = shape.drop(1).reduce(1, :*)

        private

        # Whether each array has the element at the place of its own number, or has just one element.
        def flat?(node)
          case node
          when Expression::Scalar then true
          when Expression::Leaf then node.layout.in_order?
          else node.operands.nil? || node.operands.all? { |operand| same_form?(node, operand) && flat?(operand) }
          end
        end

        def same_form?(node, operand) = operand.is_a?(Expression::Scalar) || operand.shape == node.shape || single?(operand)

        def single?(node) = node.shape.all?(1)

        # Shared branches stay shared in the stretch.
        def flat(node, from, size, known)
          from, size = 0, 1 if single?(node)
          known[node] ||=
            if node.is_a?(Expression::Scalar) then node
            elsif node.is_a?(Expression::Leaf) then leaf(node.buffer.part(node.layout.offset + from, size), node.dtype, [size])
            elsif node.operands.nil? then leaf(node.buffer.part(from, size), node.dtype, [size])
            else operation(node, node.operands.map { |operand| flat(operand, from, size, known) }, [size])
            end
        end

        # Some rows of the outermost of so many dimensions. An array that is repeated along it stays whole.
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
