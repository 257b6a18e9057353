# What may be raised: a class or an exception; anything else is a TypeError.
#
# elements = [0, 1, 2, 3, 4, 5, 6]
# gives: [:a, :b, 2, 3, 4, 5, 6]
#
# elements = [8]
# raises: TypeError at line 17, index 0, tick 0: exception class/object expected

class A < StandardError; end
class B < A; end

def choose(x)
  x == 0 ? A : B
end

elements.pmap do |x|
  raise x if x == 8
  kept = nil
  begin
    raise choose(x) if x < 2
    raise 5 if x == 2
    raise nil if x == 3
    raise Integer if x == 4
    raise Comparable, "no" if x == 5
  rescue A => kept
    x
  rescue TypeError
    -x
  end
  if kept
    begin
      raise kept
    rescue B
      :b
    rescue A
      :a
    end
  else
    x
  end
end
