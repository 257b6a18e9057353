# else runs where nothing was raised, outside the handler; its value is the value.
#
# elements = [0, 1, 2, 3]
# gives: [:rescued, 12, :outer, 4]

def divide(x)
  begin
    y = 12 / x
  rescue ZeroDivisionError
    y = -1
    :rescued
  else
    raise ArgumentError if y == 6
    y.nil? ? :never : y
  ensure
    x + 1
  end
end

elements.pmap do |x|
  divide(x)
rescue ArgumentError
  :outer
end
