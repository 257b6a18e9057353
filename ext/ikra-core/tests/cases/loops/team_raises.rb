# The exception of the first repetition that raises is raised, whichever thread meets one first.
#
# elements = [[4, 2, 3], [5, 0, 1, 2], [0, 7]]
# raises: ZeroDivisionError at line 8, index 1, tick 0: divided by 0
# shows: team

elements.peach do |row|
  row.each_index { |at| row[at] = 60 / row[at] }
end
