# Members that a Struct does not have: what Ruby raises, when it gets there.
#
# elements = [0]
# p = Point(x: 1, y: 2)
# raises: NameError at line 27, index 0, tick 0: no member 'z' in struct
#
# elements = [1]
# p = Point(x: 1, y: 2)
# raises: IndexError at line 28, index 0, tick 0: offset 2 too large for struct(size:2)
#
# elements = [2]
# p = Point(x: 1, y: 2)
# raises: IndexError at line 29, index 0, tick 0: offset -3 too small for struct(size:2)
#
# elements = [3]
# p = Point(x: 1, y: nil)
# raises: NoMethodError at line 30, index 0, tick 0: undefined method `z' for #<struct Point x=1, y=nil>
#
# elements = [4]
# p = Point(x: 1, y: nil)
# raises: NoMethodError at line 31, index 0, tick 0: undefined method `z' for nil:NilClass

Point = Struct.new(:x, :y)

elements.pmap do |i|
  case i
  when 0 then p[:z]
  when 1 then p[2]
  when 2 then p[-3]
  when 3 then p.z
  else p.y.z
  end
end
