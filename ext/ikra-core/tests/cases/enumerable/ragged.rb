# Rows of several lengths cannot be transposed.
#
# rows = [[[1, 2], [3, 4]], [[1, 2], [3]]]
# elements = [0, 1]
# raises: IndexError at line 7, index 1, tick 0: element size differs (1 should be 2)

elements.pmap { |x| rows[x].transpose.size }
