# Writing before an array's start names the index and the least one.
#
# elements = [Row(cells: [1, 2]), Row(cells: [1])]
# raises: IndexError at line 7, index 1, tick 0: index -2 too small for array; minimum: -1

class Row
  def put = @cells[-2] = 5
end

elements.pmap { |row| row.put }
