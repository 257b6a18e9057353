# frozen_string_literal: true

# How often each shade of red, green and blue occurs in pictures of three bytes a pixel.
#
#   ruby -Ilib examples/mapreduce/histogram.rb [files]

require_relative "../support/comparison"

module Histogram
  # A sunset.
  def self.generate(directory, pixels)
    random = Random.new(7)
    file = File.join(directory, "sunset.rgb")
    colours = Array.new(pixels) { |i| [255 - random.rand(40), 200 - i * 160 / pixels - random.rand(40), random.rand(256)] }
    File.binwrite(file, colours.flatten.pack("C*"))
    [file]
  end

  # Keys from 0 are red, from 256 green, from 512 blue.
  def self.run(files)
    Ikra.bytes(files, 3).map_reduce(:+, order: :key) do |(red, green, blue), out|
      out.emit(red, 1)
      out.emit(256 + green, 1)
      out.emit(512 + blue, 1)
    end
  end
end

if $PROGRAM_NAME == __FILE__
  counts = Comparison.run_on_files(Histogram, 100_000)
  %w[Red Green Blue].each_with_index do |colour, i|
    shades = counts.select { |key, _count| key / 256 == i }
    puts "#{colour}: #{shades.size} shades, most often #{shades.max_by(&:last).first % 256}"
  end
end
