# What no clause matches leaves the section as it was raised; the least tick, and in it the least index.
#
# elements = [1, 0, 2]
# gives: [10, 0, 5]
#
# elements = [1, -1, 0]
# raises: Own at line 24, index 1, tick 0: own -1
#
# elements = [1, -2]
# raises: Own at line 25, index 1, tick 0: float -0.5
#
# elements = [1, -3]
# raises: Own at line 26, index 1, tick 0: symbol
#
# elements = [1, -4]
# raises: NoMethodError at line 27, index 1, tick 0: undefined method `missing' for nil:NilClass
#
# elements = [1, -5]
# raises: Own at line 28, index 1, tick 0: Own

class Own < StandardError; end

def check(x)
  raise Own, "own #{x}" if x == -1
  raise Own.new("float #{x / 4.0}") if x == -2
  raise Own, :symbol if x == -3
  nil.missing if x == -4
  raise Own, (x > 0 ? 1 : nil) if x == -5
  10 / x
end

def passing(x)
  check(x)
rescue ZeroDivisionError
  0
ensure
  x + 1
end

elements.pmap do |x|
  passing(x)
rescue KeyError
  1
rescue IndexError => e
  raise e
end
