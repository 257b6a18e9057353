# Find patterns are not known.
#
# list = [1, 2]
# elements = [1]
# refused: this form of pattern matching

elements.pmap do |x|
  case list
  in [*, Integer, *] then x
  end
end
