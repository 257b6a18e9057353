# frozen_string_literal: true

module Ikra
  # The argument of a block of {Parallel#pstencil} that has one parameter: the elements around one, by their distance.
  # Kernels run this very code.
  class Neighbours
    # @api private
    # For each dimension, from the outermost: the distance of neighbours in the list, and the least and greatest offset.
    def initialize(list, index, dimensions, stride, least, greatest, stride2 = 0, least2 = 0, greatest2 = 0, stride3 = 0, least3 = 0, greatest3 = 0)
      @list = list
      @index = index
      @dimensions = dimensions
      @stride = stride
      @least = least
      @greatest = greatest
      @stride2 = stride2
      @least2 = least2
      @greatest2 = greatest2
      @stride3 = stride3
      @least3 = least3
      @greatest3 = greatest3
    end

    # The element at a distance in each dimension, which must be in the range of the offsets.
    #
    # @example
    #   heights.pstencil([-1, 0, 1], 0.0) { |v| (v[-1] + v[0] + v[1]) / 3.0 }
    #   grid.pstencil([[0, -1], [0, 1]], 0) { |v| v[0, 1] - v[0, -1] }
    # @param first [Integer] the distance in the outermost dimension
    # @raise [ArgumentError] for another number of dimensions
    # @raise [IndexError] for a distance outside of the range of the offsets
    def [](first, second = nil, third = nil)
      dimensions = third.nil? ? second.nil? ? 1 : 2 : 3
      raise ArgumentError, "not as many numbers as there are dimensions" if dimensions != @dimensions
      raise IndexError, "no offset reaches there" if first < @least || first > @greatest
      # All places in the range of the offsets are in the list. The masks tell the compiler that nothing overflows.
      return ::Ikra.__at(@list, (@index + (first * @stride)) & 0x7fff_ffff_ffff_ffff) if second.nil?
      raise IndexError, "no offset reaches there" if second < @least2 || second > @greatest2
      return ::Ikra.__at(@list, (@index + (first * @stride) + (second * @stride2)) & 0x7fff_ffff_ffff_ffff) if third.nil?
      raise IndexError, "no offset reaches there" if third < @least3 || third > @greatest3

      ::Ikra.__at(@list, (@index + (first * @stride) + (second * @stride2) + (third * @stride3)) & 0x7fff_ffff_ffff_ffff)
    end
  end
end
