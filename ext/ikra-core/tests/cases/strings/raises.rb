# What String's methods raise.
#
# elements = [0]
# raises: ArgumentError at line 28, index 0, tick 0: empty string
# checks: 7
#
# elements = [1]
# raises: TypeError at line 29, index 0, tick 0: no implicit conversion of Integer into String
#
# elements = [2]
# raises: TypeError at line 30, index 0, tick 0: no implicit conversion from nil to integer
#
# elements = [3]
# raises: TypeError at line 31, index 0, tick 0: no implicit conversion from nil to integer
#
# elements = [4]
# raises: TypeError at line 32, index 0, tick 0: no implicit conversion of nil into String
#
# elements = [5]
# raises: NoMethodError at line 33, index 0, tick 0: undefined method `foo' for "abc":String
#
# elements = [6]
# raises: ArgumentError at line 34, index 0, tick 0: comparison of String with 1 failed

elements.pmap do |i|
  s = "abc"
  case i
  when 0 then s[0, 0].ord
  when 1 then s.start_with?(1)
  when 2 then s[nil]
  when 3 then s[0, nil]
  when 4 then s.include?(nil)
  when 5 then s.foo
  else s < 1
  end
end
