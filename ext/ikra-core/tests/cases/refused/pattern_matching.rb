# case/in is not yet understood.
#
# elements = [1]
# refused: pattern matching

elements.pmap do |x|
  case x
  in Integer then 1
  end
end
