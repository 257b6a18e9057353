# Small arrays of Integers that constants hold are a part of the program.
#
# size = 3
# cells = [1, 0, 1, 0, 1, 1, 0, 0, 1]
# elements = [0, 4, 8]
# gives: [4, 4, 3]
# shows: after:unroll

AROUND = [[-1, 0], [0, -1], [0, 1], [1, 0]]
WEIGHTS = [1, 2]

elements.pmap do |i|
  AROUND.count { |down, right| cells[(i / size + down) % size * size + (i % size + right) % size] == 0 } + WEIGHTS[1] - 1
end
