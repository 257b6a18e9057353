# frozen_string_literal: true

module Ikra
  # What the block of {Parallel#pstencil} is given where it has one parameter: the elements around one, by how far away they
  # are. Kernels run this very code.
  class Neighbours
    # @api private
    def initialize(list, index, strides, least, greatest)
      @list = list
      @index = index
      @strides = strides
      @least = least
      @greatest = greatest
    end

    # The element that is so far away in each dimension, among those that the offsets span.
    #
    # @example
    #   heights.pstencil([-1, 0, 1], 0.0) { |v| (v[-1] + v[0] + v[1]) / 3.0 }
    #   grid.pstencil([[0, -1], [0, 1]], 0) { |v| v[0, 1] - v[0, -1] }
    # @param first [Integer] in the outermost dimension
    # @raise [ArgumentError] for another number of dimensions
    # @raise [IndexError] for what no offset spans
    def [](first, second = nil, third = nil)
      dimensions = third.nil? ? second.nil? ? 1 : 2 : 3
      raise ArgumentError, "not as many numbers as there are dimensions" if dimensions != @strides.size

      at = step(0, first)
      at += step(1, second) unless second.nil?
      at += step(2, third) unless third.nil?
      @list[@index + at]
    end

    private

    def step(dimension, offset)
      raise IndexError, "no offset reaches there" if offset < @least[dimension] || offset > @greatest[dimension]

      offset * @strides[dimension]
    end
  end
end
