# A frozen array is not written.
#
# elements = [Row(cells: [1]), Row(cells: [2].freeze)]
# raises: FrozenError at line 8, index 1, tick 0: can't modify frozen Array: [2]

class Row
  def put
    @cells[0] = 5
  end
end

elements.pmap { |row| row.put }
