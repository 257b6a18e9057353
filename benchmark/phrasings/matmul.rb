# frozen_string_literal: true

class Program::Matmul
  # Flat Arrays in place of nested ones.
  module Flat
    def state(input) = [input[:size], *%i[a b].map { |name| input.fetch(name).values }]
    def outputs(_state, result) = { c: result }
  end

  phrasing "nested Arrays, while" do
    def compute((size, a, b))
      Array.pnew(size, size) do |row, column|
        sum = 0.0
        k = 0
        while k < size
          sum += a[row][k] * b[k][column]
          k += 1
        end
        sum
      end
    end
  end

  phrasing "nested Arrays, the row in a temporary, each_with_index" do
    def compute((size, a, b))
      Array.pnew(size, size) do |row, column|
        line = a[row]
        sum = 0.0
        line.each_with_index { |x, k| sum += x * b[k][column] }
        sum
      end
    end
  end

  phrasing "nested Arrays, reduce over a Range" do
    def compute((size, a, b))
      Array.pnew(size, size) { |row, column| (0...size).reduce(0.0) { |sum, k| sum + a[row][k] * b[k][column] } }
    end
  end

  phrasing "nested Arrays, rows and columns zipped" do
    def compute((size, a, b))
      columns = b.transpose
      Array.pnew(size, size) do |row, column|
        sum = 0.0
        a[row].zip(columns[column]) { |x, y| sum += x * y }
        sum
      end
    end
  end

  phrasing "nested Arrays, a job for each row" do
    def compute((size, a, b))
      a.pmap do |row|
        Array.new(size) do |column|
          sum = 0.0
          row.each_index { |k| sum += row[k] * b[k][column] }
          sum
        end
      end
    end
  end

  phrasing "flat Arrays, times, divmod" do
    include Flat

    def compute((size, a, b))
      (0...size * size).pmap do |index|
        row, column = index.divmod(size)
        sum = 0.0
        size.times { |k| sum += a[row * size + k] * b[k * size + column] }
        sum
      end
    end
  end

  phrasing "flat Arrays, while, running indices" do
    include Flat

    def compute((size, a, b))
      (0...size * size).pmap do |index|
        left = index / size * size
        right = index % size
        last = left + size
        sum = 0.0
        while left < last
          sum += a[left] * b[right]
          left += 1
          right += size
        end
        sum
      end
    end
  end

  phrasing "flat Arrays, step" do
    include Flat

    def compute((size, a, b))
      (0...size * size).pmap do |index|
        left = index / size * size
        sum = 0.0
        (index % size).step(size * size - 1, size) do |right|
          sum += a[left] * b[right]
          left += 1
        end
        sum
      end
    end
  end

  phrasing "flat Arrays, each over a Range, a guard, early next" do
    include Flat

    def compute((size, a, b))
      result = Array.new(size * size, 0.0)
      (0...size * size).peach do |index|
        next if index >= size * size

        row = index / size
        column = index % size
        (0...size).each { |k| result[index] += a[row * size + k] * b[k * size + column] }
      end
      result
    end
  end

  # A matrix with methods cut small.
  class Matrix
    attr_reader :size

    def initialize(size, values)
      @size = size
      @values = values
    end

    def [](row, column) = @values[index(row, column)]
    def dot(other, row, column) = other.size.times.reduce(0.0) { |sum, k| sum + product(other, row, k, column) }

    private

    def index(row, column) = row * @size + column
    def product(other, row, between, column) = self[row, between] * other[between, column]
  end

  phrasing "objects with methods cut small" do
    def state(input) = %i[a b].map { |name| Matrix.new(input[:size], input.fetch(name).values) }

    def compute((a, b))
      Array.pnew(a.size, a.size) { |row, column| a.dot(b, row, column) }
    end
  end

  # MDArrays in place of Arrays.
  module MDArrays
    def state(input) = [input[:size], *%i[a b].map { |name| Ikra::MDArray.new(input.fetch(name).values.each_slice(input[:size]).to_a) }]
    def outputs(_state, result) = { c: result.to_a.flatten(1) }
  end

  phrasing "MDArrays, upto" do
    include MDArrays

    def compute((size, a, b))
      Ikra::MDArray.new(size, size) do |row, column|
        sum = 0.0
        0.upto(size - 1) { |k| sum += a[row, k] * b[k, column] }
        sum
      end
    end
  end

  phrasing "MDArray#matmul" do
    include MDArrays

    def compute((_size, a, b)) = a.matmul(b, blas: false)
  end
end
