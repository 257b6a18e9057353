# frozen_string_literal: true

require "tmpdir"
require "zlib"

RSpec.describe Ikra::MDArray do
  # The kind of pixel and the bytes of each row of a PNG file without filters.
  def pixels(png)
    expect(png).to start_with("\x89PNG\r\n\x1A\n".b)
    chunks = {}
    at = 8
    while at < png.bytesize
      size = png[at, 4].unpack1("N")
      chunks[png[at + 4, 4]] = png[at + 8, size]
      expect(png[at + 8 + size, 4].unpack1("N")).to eq(Zlib.crc32(png[at + 4, 4 + size]))
      at += 12 + size
    end
    width, height, depth, kind = chunks["IHDR"].unpack("NNCC")
    rows = Zlib.inflate(chunks["IDAT"]).bytes
    [kind, [width, height, depth], rows.each_slice(rows.size / height).map { |row| row.drop(1) }]
  end

  it "is a picture in shades of grey" do
    expect(pixels(md([[0.0, 1.0], [0.5, 2.0]]).to_png)).to eq([0, [2, 2, 8], [[0, 127], [63, 255]]])
    expect(pixels(md([[0, 7]], dtype: :u8).to_png)).to eq([0, [2, 1, 8], [[0, 7]]])
    expect(pixels(md([[true, false]]).t.to_png)).to eq([0, [1, 2, 8], [[255], [0]]])
    expect(pixels(md([[3, 3]]).to_png)).to eq([0, [2, 1, 8], [[0, 0]]])
  end

  it "is a picture in colours" do
    expect(pixels(md([[[1, 2, 3], [4, 5, 6]]], dtype: :u8).to_png)).to eq([2, [2, 1, 8], [[1, 2, 3, 4, 5, 6]]])
    expect(pixels(md([[[1, 2, 3, 4]]], dtype: :u8).to_png)).to eq([6, [1, 1, 8], [[1, 2, 3, 4]]])
    least, greatest = described_class::HEAT.first, described_class::HEAT.last
    expect(pixels(md([[0.0, 1.0, Float::NAN]]).heatmap)).to eq([2, [3, 1, 8], [[*least, *greatest, 128, 128, 128]]])
    expect(pixels(md([[-5, 0, 5, 50]]).heatmap(range: 0..10, colours: [[0, 0, 0], [100, 200, 250]]))).to eq([2, [4, 1, 8], [[0, 0, 0, 0, 0, 0, 50, 100, 125, 100, 200, 250]]])
  end

  it "is in colours for a Range, of which an end may be missing" do
    picture = md([[0.0, 1.0, 4.0]])
    expect([picture.heatmap(range: 0..), picture.heatmap(range: ..4)]).to eq([picture.heatmap] * 2)
    expect(picture.heatmap(range: 0..2)).not_to eq(picture.heatmap)
    expect { picture.heatmap(range: 5) }.to raise_error(TypeError, "range: 5 is no Range")
    expect(pixels(md([[-1e308, 0.0, 1e308]]).to_png)).to eq([0, [3, 1, 8], [[0, 127, 255]]])
    expect(pixels(md([[1e300, 1e300]]).to_png)).to eq([0, [2, 1, 8], [[0, 0]]])
    expect(pixels(md([[0.0, 5e-324]]).to_png)).to eq([0, [2, 1, 8], [[0, 255]]])
    expect { picture.heatmap(range: 0..Float::INFINITY) }.to raise_error(ArgumentError, "range: 0..Infinity has an end that is not finite")
    [nil, [], [[1, 2, 3]], [[1, 2], [3, 4]], [:red, :blue], [[0, 0, 0], [300, 255, 255]], [[0, 0, 0], [1i, 0, 0]]].each do |colours|
      expect { picture.heatmap(colours: colours) }.to raise_error(ArgumentError, /\Acolours: .* is no list of two colours or more, each \[red, green, blue\], from 0 to 255\z/)
    end
    expect { md([[0.0, Float::NAN]]).to_png }.to raise_error(FloatDomainError, "element [0, 1]: NaN")
  end

  it "is written to a file" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "a.png")
      png = md([[1, 2]]).to_png(path)
      expect(File.binread(path)).to eq(png)
    end
  end

  it "says what is no picture" do
    expect { md([1, 2]).to_png }.to raise_error(ArgumentError, /\Ashape \[2\] is no picture/)
    expect { md([1, 2]).heatmap }.to raise_error(ArgumentError, "shape [2] is no matrix")
    expect { md(0, 3).to_png }.to raise_error(ArgumentError, "shape [0, 3] is no picture: there are no elements")
  end
end
