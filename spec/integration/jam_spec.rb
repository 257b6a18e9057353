# frozen_string_literal: true

# Jobs that go the same way through the same loops, and load something in common, run several at a time
# (unroll-and-jam). Only the time shows it.
RSpec.describe "elements that are computed several at a time" do
  def product(left, right, height, width, **options)
    inner = right.size
    Array.pnew(height, width, **options) do |row, column|
      sum = 0.0
      inner.times { |k| sum += left[row][k] * right[k][column] }
      sum
    end
  end

  def matrix(height, width, seed) = Array.new(height) { |row| Array.new(width) { |column| ((row * 31 + column * 17 + seed) % 101) / 7.0 } }

  def expected(left, right)
    left.map { |row| right.transpose.map { |column| row.zip(column).inject(0.0) { |sum, (a, b)| sum + a * b } } }
  end

  it "are told of in the listing" do
    code = Ikra.explain { product(matrix(20, 3, 1), matrix(3, 20, 2), 20, 20, backend: :cpu) }.sections.last.code(:cpu)
    expect(code).to include "8 jobs at once that follow each other"
  end

  on_every_backend do |name|
    it "are what they are one after the other, in all shapes" do
      [[1, 64, 3], [9, 7, 5], [16, 16, 16], [23, 31, 4], [64, 1, 2], [5, 200, 1]].each do |height, width, inner|
        left, right = matrix(height, inner, 1), matrix(inner, width, 2)
        expect(product(left, right, height, width, backend: backend)).to eq expected(left, right)
      end
    end

    # The interpreter and the shim are slow.
    if %i[cpu cuda].include?(name)
      it "are what they are where there are many" do
        left, right = matrix(403, 2, 1), matrix(2, 405, 2)
        expect(product(left, right, 403, 405, backend: backend)).to eq expected(left, right)
        product = Ikra::MDArray.new(left).matmul(Ikra::MDArray.new(right), blas: false, backend: backend)
        expect(product.to_a).to eq expected(left, right)
      end
    end

    it "raise where the first of them raises" do
      left, right = matrix(12, 4, 1), matrix(4, 25, 2)
      right[2][7] = nil
      over = proc do |row, column|
        sum = 0.0
        4.times { |k| sum += left[row][k] * right[k][column] }
        sum
      end
      error = begin
        Array.new(12) { |row| Array.new(25) { |column| over.call(row, column) } }
      rescue TypeError => e
        e
      end
      expect { Array.pnew(12, 25, backend: backend, &over) }.to raise_error(error.class, error.message)
      expect { product(matrix(12, 4, 1), matrix(4, 25, 2), 12, 26, backend: backend) }.to raise_error(TypeError)
    end

    it "are left by break at the first that says so" do
      list = Array.new(40) { |i| i * 0.5 }
      found = (0...400).pmap(backend: backend) do |i|
        sum = 0.0
        list.size.times { |k| sum += list[k] * (i % 20) }
        break [i, sum] if sum > 4000.0

        sum
      end
      first = (0...400).find { |i| list.sum { |x| x * (i % 20) } > 4000.0 }
      expect(found.first).to eq first
    end

    it "are MDArrays' products, too" do
      left, right = matrix(33, 9, 3), matrix(9, 21, 4)
      product = Ikra::MDArray.new(left).matmul(Ikra::MDArray.new(right), blas: false, backend: backend)
      expect(product.to_a).to eq expected(left, right)
      stacked = Ikra::MDArray.new([left, left]).matmul(Ikra::MDArray.new([right, right]), blas: false, backend: backend)
      expect(stacked.to_a).to eq [expected(left, right)] * 2
    end
  end
end
