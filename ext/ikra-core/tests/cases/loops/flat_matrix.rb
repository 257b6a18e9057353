# Indices of flat matrices are checked for the first and the last repetition of a strip, whether they are computed anew
# or added to.
#
# a = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
# b = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]
# size = 3
# elements = [0, 5, 8]
# gives: [[7.5, 7.5], [33.0, 33.0], [55.5, 55.5]]

elements.pmap do |index|
  row, column = index.divmod(size)
  sum = 0.0
  size.times { |k| sum += a[row * size + k] * b[k * size + column] }
  other = 0.0
  left, right = row * size, column
  last = left + size
  while left < last
    other += a[left] * b[right]
    left += 1
    right += size
  end
  [sum, other]
end
