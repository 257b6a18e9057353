# Wrong numbers of arguments, methods that new objects lack.
#
# elements = [1, 2]
# raises: ArgumentError at line 16, index 1, tick 0: wrong number of arguments (given 1, expected 0)
#
# elements = [1, 3]
# raises: ArgumentError at line 11, index 1, tick 0: wrong number of arguments (given 0, expected 1)

class Plain; end

class Point; def initialize(x) = @x = x; end

elements.pmap do |i|
  case i
  when 1 then Plain.new
  when 2 then Plain.new(1)
  else Point.new
  end
  i
end
