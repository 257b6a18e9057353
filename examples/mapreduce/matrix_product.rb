# frozen_string_literal: true

# Multiplies two square matrices: each element of the product is a pair of its place and its value.
#
#   ruby -Ilib examples/mapreduce/matrix_product.rb [rows]

require_relative "../support/comparison"

module MatrixProductInPairs
  def self.run(size)
    random = Random.new(17)
    a, b = Array.new(2) { Array.new(size) { Array.new(size) { random.rand - 0.5 } } }
    columns = b.transpose
    (0...(size * size)).pmap_reduce do |i, out|
      y, x = i.divmod(size)
      out.emit([y, x], a[y].zip(columns[x]).sum { |one, other| one * other })
    end
  end
end

if $PROGRAM_NAME == __FILE__
  pairs = Comparison.run(100) { |size| MatrixProductInPairs.run(size) }
  puts format("The trace is %.9f.", pairs.sum { |(y, x), value| y == x ? value : 0.0 })
end
