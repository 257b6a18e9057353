# Arrays in captures and ivars: index from both ends, out of range, size, first, last.
#
# table = [10, 20, 30]
# elements = [0, 2, -1, -3, 3, -4]
# gives: [53, 73, 73, 53, 42, 42]

elements.pmap { |i| (table[i] || -1) + table.size + table.first + table.last + (table.empty? ? 1 : 0) }
