# frozen_string_literal: true

module Ikra
  # The neighbours that {Parallel#pstencil} passes to its block, for an array of one or more dimensions.
  # @api private
  class Stencil
    # A distance beyond the size of any array: neighbours farther away are outside as well.
    FAR = 1 << 40
    private_constant :FAR

    # What is known of some offsets in an array of some sizes. Calls with equal ones share it.
    # @api private
    class Grid
      # The most offsets, and the most sizes for each, that are remembered.
      MAX_KNOWN = 100
      private_constant :MAX_KNOWN

      attr_reader :sizes, :strides, :places, :offsets, :least, :greatest
      # For each dimension, the last arguments of {Neighbours}.
      attr_reader :reaches
      # Every size but the first. Then for each dimension the range of indices where all neighbours exist.
      attr_reader :bounds

      @known = Memo.new(MAX_KNOWN)

      class << self
        # The neighbours with an offset for each dimension, and the grids of them by their sizes.
        def known(offsets)
          @known[offsets] || begin
            places = yield # raises for what is no list of offsets
            key = offsets.map { |offset| offset.is_a?(Array) ? offset.dup.freeze : offset }.freeze
            @known.keep(key, [places, Memo.new(MAX_KNOWN)])
          end
        end

        def of((places, grids), sizes)
          grids[sizes] || grids.keep(sizes.dup.freeze, new(places, sizes))
        end
      end

      def initialize(places, sizes)
        @places = places
        @sizes = sizes.dup.freeze
        @strides = sizes.each_index.map { |dimension| sizes.drop(dimension + 1).reduce(1, :*) }
        @offsets = places.map { |place| place.zip(@strides, sizes).sum { |offset, stride, size| offset.clamp(-size, size) * stride } }
        @least, @greatest = places.transpose.map(&:minmax).transpose
        @reaches = @strides.zip(@least, @greatest).flatten
        @bounds = [*sizes.drop(1), *sizes.zip(@least, @greatest).flat_map { |size, least, greatest| [(-least).clamp(0, size), (size - greatest).clamp(0, size)] }]
      end
    end
    private_constant :Grid

    # The elements of all dimensions, one after the other.
    attr_reader :list

    # The size of each dimension, from the outermost.
    def sizes = @grid.sizes

    # The distance of neighbours of each dimension in the list.
    def strides = @grid.strides

    # The neighbours as they were given, with an offset for each dimension.
    def places = @grid.places

    # Their offsets in the list.
    def offsets = @grid.offsets

    # The least offset in each dimension.
    def least = @grid.least

    # The greatest offset in each dimension.
    def greatest = @grid.greatest

    # @param sizes [Array<Integer>, nil] the sizes of a base that is a flat list already
    # @raise [ArgumentError] for offsets that are no Integers or lists of them, or of several lengths; for rows of
    #   several lengths
    def initialize(base, offsets, sizes = nil)
      CoreMethods.check
      known = Grid.known(offsets) { checked(offsets) }
      dimensions = known.first.first.size
      raise ArgumentError, "offsets of #{dimensions} dimensions, for an array of #{sizes.size}" if sizes && dimensions != sizes.size

      @grid = Grid.of(known, sizes || sizes_of(base, dimensions))
      @list = sizes ? base : base.to_a.flatten(dimensions - 1)
    end

    # The method of the prelude that passes the neighbours to the block (`stencil_5_2`: five, in two dimensions), and
    # its other arguments (`bounds` of +ext/ikra-core/src/prelude/operations.rs+).
    #
    # @raise [ArgumentError] for more neighbours than can be separate arguments
    def method_for(block, fill, with_index: false)
      form = form(block, with_index)
      return [:"neighbours_#{sizes.size}", @list, fill, *@grid.reaches, *@grid.bounds] if form == :relative

      count, most = offsets.size, Operation::MAX_NEIGHBOURS
      raise ArgumentError, "#{count} offsets: at most #{most} neighbours are given by themselves: give the block one parameter" if count > most

      [:"#{form == :each ? "stencil" : "stencil_list"}_#{count}_#{sizes.size}", @list, fill, *offsets, *@grid.bounds]
    end

    # Other neighbours in an array of this form.
    def like(offsets, list = @list) = Stencil.new(list, offsets, sizes)

    # How the block takes neighbours: +:relative+ (one parameter, called with offsets), +:each+ (a parameter each) or
    # +:list+.
    def form(block, with_index)
      parameters = block.parameters.select { |kind, _| %i[req opt rest].include?(kind) }
      return first_is_list?(parameters) ? :list : :relative if with_index || parameters.size < 2
      return :list if parameters.any? { |kind, _| kind == :rest }

      unless parameters.size == offsets.size
        raise ArgumentError, "the block has #{parameters.size} parameters, and there are #{offsets.size} offsets: give it as many, or one"
      end

      :each
    end

    # Whether all neighbours of an element exist.
    def inside?(index)
      sizes.zip(strides, least, greatest).all? do |size, stride, least, greatest|
        at = index / stride % size
        at + least >= 0 && at + greatest < size
      end
    end

    # The neighbours of an element, for a block with one parameter.
    def around(index) = Neighbours.new(@list, index, sizes.size, *@grid.reaches)

    # A flat list in the form of the receiver.
    def nested(values) = Operation.nested(values, sizes)

    private

    # A parameter in parentheses has no name.
    def first_is_list?(parameters)
      kind, name = parameters.first
      kind == :rest || (!kind.nil? && name.nil?)
    end

    def checked(offsets)
      raise ArgumentError, "offsets: #{offsets.inspect} is not an Array of Integers or of Arrays of Integers" unless offsets.is_a?(Array) && !offsets.empty?

      places = offsets.map { |offset| offset.is_a?(Array) ? offset : [offset] }
      places.each_with_index do |place, at|
        next if place.size == places.first.size && place.all?(Integer) && !place.empty?

        raise ArgumentError, "offsets: #{offsets[at].inspect} is not #{places.first.size == 1 ? "an Integer" : "#{places.first.size} Integers"}"
      end
      raise ArgumentError, "offsets: a stencil has at most 3 dimensions" if places.first.size > 3

      places.map { |place| place.map { |offset| offset.clamp(-FAR, FAR) } }
    end

    def sizes_of(base, dimensions)
      level = [base]
      Array.new(dimensions) do |dimension|
        rows = dimension.zero? ? level : level.flatten(1)
        unless rows.all? { |row| row.is_a?(Array) || (dimension.zero? && row.is_a?(Range)) }
          raise ArgumentError, "offsets of #{dimensions} dimensions are for arrays within arrays, #{dimensions} deep"
        end

        sizes = rows.map(&:size).uniq
        raise ArgumentError, "the rows are of several lengths: #{sizes.first(3).join(", ")}" if sizes.size > 1

        level = rows.map(&:to_a)
        sizes.first || 0
      end
    end
  end
  private_constant :Stencil
end
