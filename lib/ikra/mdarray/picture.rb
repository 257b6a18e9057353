# frozen_string_literal: true

module Ikra
  # Pictures of matrices, as PNG.
  class MDArray
    # Colours from the least to the greatest element, in equal steps of red, green and blue: dark blue, purple, red,
    # orange, light yellow.
    HEAT = [[0, 0, 4], [40, 11, 84], [101, 21, 110], [159, 42, 99], [212, 72, 66], [245, 125, 21], [250, 193, 39], [252, 255, 164]].freeze

    # A PNG picture. A matrix is drawn in shades of grey, from the least element (black) to the greatest. Elements of
    # kind u8 are taken as shades. An array of u8 of shape [height, width, 3] or [height, width, 4] is drawn in colours:
    # red, green, blue, and opacity.
    #
    # @param path [String, nil] the file to write; nil: none
    # @return [String] the bytes of the PNG file
    # @raise [ArgumentError] for another shape, and for one without elements
    # @raise [FloatDomainError] for elements that are not finite, which {#heatmap} shows
    def to_png(path = nil)
      colours = ndim == 3 && [3, 4].include?(shape[2]) && dtype == :u8
      raise ArgumentError, "shape #{shape.inspect} is no picture: [height, width] is, and [height, width, 3] or [height, width, 4] of kind u8" unless colours || ndim == 2
      raise ArgumentError, "shape #{shape.inspect} is no picture: there are no elements" if empty?

      pixels = dtype == :u8 ? self : shades(255).to(:u8)
      png = Png.of(pixels.to_bytes, shape[1], shape[0], colours ? shape[2] : 1)
      File.binwrite(path, png) if path
      png
    end

    # A picture of a matrix in colours, from the least element to the greatest. Elements that are not finite are grey.
    #
    # @param path (see #to_png)
    # @param range [Range, nil] the elements that get the first and the last colour; a missing end is that of all
    #   elements
    # @param colours [Array<Array<Numeric>>] two or more, from the least to the greatest element: red, green and blue,
    #   from 0 to 255
    # @return (see #to_png)
    # @raise (see #to_png)
    def heatmap(path = nil, range: nil, colours: HEAT)
      raise ArgumentError, "shape #{shape.inspect} is no matrix" if ndim != 2
      raise ArgumentError, "shape #{shape.inspect} is no picture: there are no elements" if empty?

      part = ->(value) { value.is_a?(Numeric) && value.real? && value.between?(0, 255) }
      rgb = colours.is_a?(Array) && colours.size > 1 && colours.all? { |colour| colour.is_a?(Array) && colour.size == 3 && colour.all?(&part) }
      raise ArgumentError, "colours: #{DType.shown(colours)} is no list of two colours or more, each [red, green, blue], from 0 to 255" unless rgb

      parts = colours.size - 1
      scaled = shades(parts.to_f, range)
      channels = Array.new(3) do |channel|
        steps = Buffer.from_list(:f64, colours.map { |colour| colour[channel].to_f })
        scaled.map(dtype: :u8, **Run::EXACT) do |x|
          if x.nan?
            128
          else
            below = x.floor
            below = parts - 1 if below >= parts
            (steps[below] + (steps[below + 1] - steps[below]) * (x - below)).round
          end
        end
      end
      channels.first.zip(*channels.drop(1)).to_png(path)
    end

    private

    # The elements, scaled to the range from 0.0 to +most+. Those that are not finite are NaN.
    def shades(most, range = nil)
      raise TypeError, "range: #{DType.shown(range)} is no Range" unless range.nil? || range.is_a?(Range)

      values = (dtype == :bool ? as(:u8) : self).__send__(:as, :f64)
      low, high = range&.begin&.to_f, range&.end&.to_f
      low, high = [low, high].zip(values.select(**Run::EXACT, &:finite?).minmax).map { |given, found| given || found } unless low && high
      low ||= 0.0
      high ||= low
      raise ArgumentError, "range: #{range.inspect} has an end that is not finite" unless low.finite? && high.finite?

      # The distance of two halves is no greater than the greatest Float.
      scale = (high - low).finite? ? 1.0 : 0.5
      from = low * scale
      width = high <= low ? 1.0 : high * scale - from
      values.map(**Run::EXACT) do |x|
        if x.finite?
          y = (x * scale - from) / width * most
          y < 0.0 ? 0.0 : y > most ? most * 1.0 : y
        else
          0.0 / 0.0
        end
      end
    end

    # Files of PNG (Portable Network Graphics Specification, second edition).
    # @api private
    module Png
      SIGNATURE = "\x89PNG\r\n\x1A\n".b
      # The format's numbers for pixels of so many bytes.
      KINDS = { 1 => 0, 3 => 2, 4 => 6 }.freeze

      class << self
        # @param bytes [String] the pixels, row after row
        # @param channels [Integer] bytes of a pixel: 1, 3 or 4
        def of(bytes, width, height, channels)
          require "zlib"
          rows = Array.new(height) { |row| "\0".b << bytes.byteslice(row * width * channels, width * channels) }
          header = [width, height, 8, KINDS.fetch(channels), 0, 0, 0].pack("NNC5")
          SIGNATURE + chunk("IHDR", header) + chunk("IDAT", Zlib.deflate(rows.join)) + chunk("IEND", "".b)
        end

        private

        def chunk(type, data) = [data.bytesize].pack("N") + type + data + [Zlib.crc32(type + data)].pack("N")
      end
    end
    private_constant :Png
  end
end
