# Words that an exception carries come through methods: four at most, of every kind.
#
# elements = [1, 2, 3]
# gives: [1, 2, 3]
#
# elements = [1, -5]
# raises: Report at line 15, index 1, tick 0: -5 -1.25! false, odd
#
# elements = [1, -6]
# raises: Report at line 16, index 1, tick 0:  of -6

class Report < StandardError; end

def check(x, y, flag, name)
  raise Report, "#{x} #{y}! #{flag}, #{name}" if x == -5
  raise Report, "#{x == -6 ? nil : 1.5} of #{x}" if x < 0
  x
end

def bounds(x, n)
  n > 0 ? bounds(x, n - 1) : (check(x, x * 0.25, x > 3, x.even? ? :even : :odd)..x)
end

elements.pmap do |x|
  bounds(x, 3).first
rescue KeyError
  0
end
