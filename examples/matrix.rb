# frozen_string_literal: true

# Multiplies matrices that are arrays of rows.
#
#   ruby -Ilib examples/matrix.rb [rows]

require_relative "support/comparison"

module MatrixProduct
  class Matrix
    attr_reader :rows

    def self.build(height, width) = new(Array.new(height) { |row| Array.new(width) { |column| yield row, column } })

    def initialize(rows)
      @rows = rows
    end

    def columns = @rows.transpose

    def *(other)
      raise ArgumentError, "#{@rows.first.size} columns do not meet #{other.rows.size} rows" unless @rows.first.size == other.rows.size

      columns = other.columns
      Matrix.new(@rows.pmap { |row| columns.map { |column| dot(row, column) } })
    end

    def transpose = Matrix.new(columns)

    private

    def dot(row, column)
      row.zip(column).sum { |a, b| a * b }
    end
  end

  # The product of a matrix with its transpose, by a third.
  def self.run(size)
    random = Random.new(17)
    a = Matrix.build(size, size) { random.rand - 0.5 }
    b = Matrix.build(size, size) { |row, column| 1.0 / (row + column + 1) }
    (a * a.transpose * b).rows
  end
end

if $PROGRAM_NAME == __FILE__
  rows = Comparison.run(200) { |size| MatrixProduct.run(size) }
  puts format("The trace is %.9f.", rows.each_with_index.sum { |row, i| row[i] })
end
