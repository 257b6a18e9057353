# frozen_string_literal: true

require "rbconfig"
require "zlib"

# The inputs of the programs of benchmark/mapreduce.rb, the same in each run, and the checksum of their results. Smaller
# inputs are the beginnings of larger ones.
module Inputs
  # Words and other kinds are drawn from so many places at equal chances, of which a kind of rank r has about 1 / r.
  PLACES = 1 << 16
  CHARACTERS = [*"a".."z"].freeze

  module_function

  # Lines of twelve words, whose frequencies are those of Zipf. About 95 thousand kinds in 100 MB.
  def words(bytes)
    lines(bytes, 70) { |random, count| ranked(random, 12 * count, 100_000, 1 << 20).each_slice(12).map { |some| some.join(" ") } }
  end

  # A book of one line.
  def one_line(text) = text.tr("\n", " ")

  # Ruby's own library, as often as needed. Nil where there is too little.
  def library(bytes)
    files = Dir[File.join(RbConfig::CONFIG["rubylibdir"], "**/*.rb")].sort
    text = files.map { |file| File.read(file, encoding: Encoding::UTF_8) }.select(&:valid_encoding?).join("\n")
    text.bytesize < 10_000 ? nil : cut(text * (bytes / text.bytesize + 1), bytes)
  end

  # Pixels of three bytes, all shades alike.
  def pixels(bytes) = Random.new(3).bytes(bytes / 3 * 3)

  # Requests: "URL IP COOKIE". Of ten thousand URLs some are frequent.
  def pages(bytes)
    urls = Array.new(PLACES) { |i| "/shop/#{word(rank(i, 10_000, PLACES))}/index.html" }
    addresses = addresses(PLACES)
    lines(bytes, 60) do |random, count|
      shorts(random, count, urls).zip(shorts(random, count, addresses), random.bytes(8 * count).unpack("L*").each_slice(2)).map do |url, ip, (one, other)|
        "#{url} #{ip} #{one.to_s(36)}#{other.to_s(36)}"
      end
    end
  end

  # Requests: "IP GET URL STATUS SIZE" from 4096 addresses. One of 32 has a status of 500 to 504.
  def logs(bytes)
    addresses = addresses(4096)
    rest = Array.new(PLACES) do |i|
      status = i % 32 == 7 ? 500 + i / 32 % 5 : [200, 200, 200, 304, 404][i % 5]
      "GET /page/#{i * 31 % 4001}.html #{status} #{i * 7919 % 50_021}"
    end
    lines(bytes, 50) { |random, count| shorts(random, count, addresses).zip(shorts(random, count, rest)).map { |both| both.join(" ") } }
  end

  # Two square matrices in one list, of numbers between 0 and 1.
  def matrices(size) = Array.new(2 * size * size) { |i| (i * 7919 % 100_003) / 100_003.0 }

  # The beginning of a text, up to the last line that ends within so many bytes.
  def cut(text, bytes)
    return text if text.bytesize <= bytes

    text.byteslice(0, bytes).then { |part| part.byteslice(0, part.b.rindex("\n") + 1) }
  end

  # As common.h computes it: the number of keys, the sum of the numbers, and a hash of both.
  def checksum(counts)
    hash = counts.sum { |key, number| mix((Zlib.crc32(key.is_a?(Integer) ? [key].pack("l<") : key) + (number << 32)) & MASK) }
    { keys: counts.size, sum: counts.sum(&:last), hash: format("%016x", hash & MASK) }
  end

  MASK = 2**64 - 1

  def mix(number)
    number = ((number ^ number >> 30) * 0xbf58476d1ce4e5b9) & MASK
    number = ((number ^ number >> 27) * 0x94d049bb133111eb) & MASK
    number ^ number >> 31
  end

  # A text of at most `bytes` bytes. The block makes a given number of lines, which have about `each` bytes.
  def lines(bytes, each)
    random = Random.new(51)
    parts = []
    made = 0
    while made < bytes
      parts << "#{yield(random, [(bytes - made) / each + 1, 1 << 12].min).join("\n")}\n"
      made += parts.last.bytesize
    end
    cut(parts.join, bytes)
  end

  # Words by ranks of a Zipf distribution.
  def ranked(random, count, kinds, places)
    @words ||= {}
    words = @words[[kinds, places]] ||= Array.new(places) { |i| rank(i, kinds, places) }.then { |ranks| known = Hash.new { |h, r| h[r] = word(r) }; ranks.map { |r| known[r] } }
    words.values_at(*random.bytes(4 * count).unpack("L*").map { |number| number & (places - 1) })
  end

  # The rank at a place: ranks up to r take the share log(r) / log(kinds) of all places.
  def rank(place, kinds, places) = (kinds**(place / places.to_f)).floor

  # Another word for each rank. Short ones are frequent.
  def word(rank)
    letters = +""
    number = rank
    while number.positive?
      number, letter = (number - 1).divmod(26)
      letters << CHARACTERS[letter]
    end
    letters << "ABCD"[0, rank % 5]
  end

  def addresses(kinds) = Array.new(PLACES) { |i| "10.#{i % kinds % 3}.#{i % kinds * 31 % 97}.#{i % kinds % 251}" }

  def shorts(random, count, list) = list.values_at(*random.bytes(2 * count).unpack("S*"))
end
