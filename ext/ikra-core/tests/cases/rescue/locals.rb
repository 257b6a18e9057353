# What locals hold in a clause is what they held when it was raised, of whatever kind.
#
# elements = [0, 1, 2, 3, 4]
# gives: [-1, 5, :sym, true, 3.5]

elements.pmap do |x|
  a = nil
  b = 1.5
  begin
    1 / x
    a = 5
    1 / (x - 1)
    a = :sym
    b = a
    1 / (x - 2)
    a = 2.5
    (x == 3 ? nil : 1).succ
  rescue ZeroDivisionError
    a.nil? ? -1 : a
  rescue NoMethodError
    b == :sym && a == 2.5 ? true : false
  else
    a + 1
  end
end
