# What nobody rescues leaves the section, with the least index first.
#
# elements = [1, 2, 3]
# gives: [10, 20, 30]
#
# elements = [1, -2, -3]
# raises: Negative at line 21, index 1, tick 0: -2 is negative
#
# elements = [0]
# raises: RuntimeError at line 22, index 0, tick 0: zero
#
# elements = [5, 77]
# raises: Negative at line 23, index 1, tick 0: Negative
#
# elements = [5, 78]
# raises: ArgumentError at line 24, index 1, tick 0: no 78.5 and  and true here

class Negative < StandardError; end

elements.pmap do |x|
  raise Negative, "#{x} is negative" if x < 0
  raise "zero" if x == 0
  fail Negative if x == 77
  raise ArgumentError.new("no #{x + 0.5} and #{nil} and #{true} here") if x == 78
  x * 10
end
