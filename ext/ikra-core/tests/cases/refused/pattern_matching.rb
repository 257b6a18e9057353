# What other keys there are is not known.
#
# list = [1, 2]
# elements = [1]
# refused: this form of pattern matching

elements.pmap do |x|
  case list
  in { a: Integer, **rest } then x
  end
end
