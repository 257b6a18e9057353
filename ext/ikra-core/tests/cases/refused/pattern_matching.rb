# Kernels make no Hash of the other keys.
#
# elements = [1]
# refused: the Hash that `**` of a pattern gives

elements.pmap do |x|
  x in { a: Integer, **rest }
  rest
end
