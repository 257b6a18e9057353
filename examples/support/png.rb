# frozen_string_literal: true

require "zlib"

# Writes pictures as PNG files.
module PNG
  SIGNATURE = "\x89PNG\r\n\x1A\n".b
  TRUE_COLOUR = [8, 2, 0, 0, 0].freeze # 8 bits for each of red, green and blue

  # @param rows [Array<Array<Array<Integer>>>] red, green and blue, 0 to 255, of each pixel of each row
  def self.write(path, rows)
    lines = rows.map { |row| [0, *row.flatten].pack("C*") }
    header = [rows.first.size, rows.size, *TRUE_COLOUR].pack("NNC5")
    File.binwrite(path, SIGNATURE + chunk("IHDR", header) + chunk("IDAT", Zlib.deflate(lines.join)) + chunk("IEND", ""))
    puts "Picture: #{path}"
  end

  def self.chunk(type, data)
    [data.bytesize].pack("N") + type + data + [Zlib.crc32(type + data)].pack("N")
  end
end
