# The value of a begin is that of its last expression, of a clause, or of else; never of ensure.
#
# elements = [0, 1, 2, 3, 4]
# gives: [false, nil, 2.5, :sym, 2]

def of(x)
  begin
    case x
    when 0 then 1 / x
    when 1 then nil
    when 2 then 2.5
    else :sym
    end
  rescue ZeroDivisionError => e
    e.nil?
  ensure
    99
  end
end

elements.pmap do |x|
  y = of(x)
  z = begin
    Integer.sqrt(-x)
  rescue Math::DomainError => e
    e.is_a?(ArgumentError) ? 1 : 2
  end
  (x == 4 ? raise(IndexError) : y) rescue z
end
