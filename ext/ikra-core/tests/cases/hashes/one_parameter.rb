# Blocks with one parameter would be given arrays.
#
# table = { a: 1 }
# elements = [0]
# refused: to blocks with two parameters only

elements.pmap { |x| table.each { |pair| x += pair[1] } }
