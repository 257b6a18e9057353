# frozen_string_literal: true

# The inputs and outputs of a benchmark program: named columns of numbers, and the file that every language reads and
# writes.
#
# The file begins with 8 bytes "IKRACOLS" and the number of columns. Then each column has its name (24 bytes, filled
# with zeros), the letter of its type, 1 where it is an output, 6 unused bytes, and its number of numbers. Then come the
# numbers of one column after the other, each column filled up to 8 bytes. All is little endian. A single number is a
# column of one.
class Columns
  MAGIC = "IKRACOLS"
  # Letters of Array#pack, and bytes.
  TYPES = { int64: ["q", 8], int32: ["l", 4], float64: ["d", 8], byte: ["C", 1] }.freeze
  Column = Struct.new(:type, :values, :output)

  def initialize
    @columns = {}
  end

  # Adds a column that the program reads.
  def input(name, type, values)
    @columns[name] = Column.new(type, Array(values), false)
    self
  end

  # Adds a column that the program writes, with its values before.
  def output(name, type, values)
    @columns[name] = Column.new(type, values, true)
    self
  end

  # The numbers of a column. For an input of one number, that number.
  def [](name)
    column = @columns.fetch(name)
    column.values.size == 1 && !column.output ? column.values.first : column.values
  end

  def each(&block) = @columns.each(&block)
  def type(name) = @columns.fetch(name).type
  def outputs = @columns.select { |_, column| column.output }.transform_values(&:values)
  def fetch(name) = @columns.fetch(name)

  # Bytes of all columns, and of the outputs.
  def bytes(only_outputs: false)
    @columns.each_value.sum { |column| only_outputs && !column.output ? 0 : column.values.size * TYPES.fetch(column.type).last }
  end

  def write(path)
    File.open(path, "wb") do |file|
      file.write(MAGIC, [@columns.size].pack("q"))
      @columns.each { |name, column| file.write([name.to_s, TYPES.fetch(column.type).first, column.output ? 1 : 0, column.values.size].pack("a24aCx6q")) }
      @columns.each_value do |column|
        bytes = column.values.pack("#{TYPES.fetch(column.type).first}*")
        file.write(bytes, "\0" * (-bytes.bytesize % 8))
      end
    end
  end

  def self.read(path)
    bytes = File.binread(path)
    raise "#{path} has no columns" unless bytes.start_with?(MAGIC)

    columns = new
    at = 16 + 40 * bytes.unpack1("q", offset: 8)
    bytes.unpack1("q", offset: 8).times do |number|
      name, letter, output, count = bytes.unpack("Z24aCx6q", offset: 16 + 40 * number)
      type, (_, size) = TYPES.find { |_, (known, _)| known == letter }
      values = bytes.byteslice(at, count * size).unpack("#{letter}*")
      output == 1 ? columns.output(name.to_sym, type, values) : columns.input(name.to_sym, type, values)
      at += count * size + (-(count * size) % 8)
    end
    columns
  end
end
