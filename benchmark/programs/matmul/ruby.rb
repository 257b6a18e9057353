# frozen_string_literal: true

class Program::Matmul
  def compute((size, a, b))
    Array.new(size) do |row|
      Array.new(size) do |column|
        sum = 0.0
        size.times { |k| sum += a[row][k] * b[k][column] }
        sum
      end
    end
  end
end
