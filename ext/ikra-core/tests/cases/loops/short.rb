# A short loop whose count decides branches and remainders is its repetitions.
#
# size = 3
# cells = [1, 0, 1, 0, 1, 1, 0, 0, 1]
# elements = [0, 1, 2, 3, 4, 5, 6, 7, 8]
# gives: [4, 5, 4, 5, 4, 4, 5, 5, 4]
# shows: after:unroll

elements.pmap do |i|
  around = 0
  (-1..1).each do |down|
    (-1..1).each do |right|
      next if down == 0 && right == 0
      around += cells[(i / size + down) % size * size + (i % size + right) % size]
    end
  end
  around
end
