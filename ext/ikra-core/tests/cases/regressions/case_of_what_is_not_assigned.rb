# The variable of a loop without rounds is nil, also as the subject of a case. Found by a generated program.
#
# elements = [1, 2]
# gives: [2, 3]

elements.pmap do |x|
  for i in 2...1
    x += i
  end
  case i when Numeric then 1 else x + 1 end
end
