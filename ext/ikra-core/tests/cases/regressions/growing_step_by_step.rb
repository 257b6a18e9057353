# Of `list << a << b` the second argument sees the first one in the list, and nothing is after an argument that raises.
#
# elements = [0, 1, 3]
# gives: [[0, 4, 6], [1, 1, 6, 4, 4], [3, 7, 2]]
# checks: 11
#
# elements = [:a, :b]
# raises: NoMethodError at line 14, index 0, tick 0: undefined method `ceil' for :a:Symbol

elements.pmap do |x|
  list = []
  list << 1 if x == 1
  begin
    list << x.ceil << 12 / (3 - x) << list.size + list[1]
    list << list.size if list.first == 1
  rescue ZeroDivisionError
    list << 7 << list.size
  end
  list
end
