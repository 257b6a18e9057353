# Kernels print nothing.
#
# elements = [1]
# refused: puts

elements.pmap { |x| puts x }
