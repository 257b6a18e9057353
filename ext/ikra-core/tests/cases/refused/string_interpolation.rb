# Strings are not built in kernels.
#
# elements = [1, 2]
# refused: a string with interpolation

elements.pmap { |x| "#{x} m" }
