# A method that always raises, called where its value is used and where it is not.
#
# elements = [1, 2]
# gives: [1, 2]
#
# elements = [1, 20]
# raises: NoMethodError at line 11, index 1, tick 0: undefined method `+' for nil:NilClass

def lost(x)
  y = x * 2
  nil + y
end

elements.pmap do |x|
  lost(x) if x > 50
  x = lost(x) if x > 10
  x
end
