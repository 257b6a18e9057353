# Arrays of arrays, of different lengths, shared and empty.
#
# row = [1, 2]
# grid = [row, [3], [], row]
# elements = [0, 1, 2, 3, 4]
# gives: [132, 31, 0, 132, -1]

elements.pmap do |i|
  cells = grid[i]
  next -1 unless cells
  sum = 0
  cells.each { |cell| sum += cell }
  sum * 10 + cells.size + (cells.equal?(grid[0]) ? 100 : 0)
end
