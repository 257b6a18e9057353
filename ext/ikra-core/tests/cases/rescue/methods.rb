# Exceptions leave the methods that raise them, through those that do not rescue them.
#
# elements = [3, 0, -1, 100, 7]
# gives: [33, 1000, -1, 7, 14]

class Bad < StandardError; end

def inverse(x)
  raise Bad, "bad #{x}" if x == 100
  99 / x
end

def through(x)
  y = inverse(x)
  raise ArgumentError if y < 0
  y
end

def rescuing(x)
  through(x)
rescue ArgumentError
  -1
end

elements.pmap do |x|
  rescuing(x)
rescue ZeroDivisionError
  1000
rescue Bad
  7
end
