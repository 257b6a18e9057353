# return in a lambda, and what it raises, with an ensure around it or in it.
#
# elements = [0, 1, 2, 3]
# gives: [-19, 51, -9, 31]

def tried(f, x)
  f.call(x)
rescue ArgumentError
  -1
ensure
  x.to_f
end

elements.pmap do |x|
  count = 0
  f = lambda do |y|
    begin
      return 5 if y == 1
      raise ArgumentError if y == 2
      10 / y
    ensure
      count += 1
    end
  end
  a = begin
    tried(f, x)
  rescue ZeroDivisionError
    -2
  end
  a * 10 + count
end
