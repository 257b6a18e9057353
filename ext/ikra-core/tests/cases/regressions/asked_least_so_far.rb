# min and max of an array ask the best so far about each element; those of a literal that is made ask each element.
#
# elements = [0]
# raises: ArgumentError at line 41, index 0, tick 0: comparison of Integer with nil failed
# checks: 22
#
# elements = [1]
# raises: ArgumentError at line 41, index 0, tick 0: comparison of NilClass with 5 failed
#
# elements = [2]
# raises: ArgumentError at line 42, index 0, tick 0: comparison of Integer with nil failed
#
# elements = [3]
# raises: ArgumentError at line 42, index 0, tick 0: comparison of NilClass with 5 failed
#
# elements = [4]
# raises: ArgumentError at line 43, index 0, tick 0: comparison of NilClass with 5 failed
#
# elements = [5]
# raises: ArgumentError at line 44, index 0, tick 0: comparison of NilClass with 5 failed
#
# elements = [6]
# raises: ArgumentError at line 43, index 0, tick 0: comparison of Float with true failed
#
# elements = [7]
# raises: ArgumentError at line 44, index 0, tick 0: comparison of Float with true failed
#
# elements = [8]
# raises: ArgumentError at line 45, index 0, tick 0: comparison of Integer with nil failed

class Box
  attr_accessor :list
end

elements.pmap do |i|
  box = Box.new
  box.list = i.even? ? [5, 7, nil] : [nil, 5]
  a = i > 5 ? true : 5
  b = a == 5 ? nil : 2.5
  case i
  when 0, 1 then box.list.min
  when 2, 3 then box.list.max
  when 4, 6 then [a, b].min
  when 5, 7 then [a, b, 1].max
  else [5, nil].min
  end
end
