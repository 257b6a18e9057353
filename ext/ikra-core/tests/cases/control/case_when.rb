# case with values, ranges, classes and conditions.
#
# elements = [0, 3, 7.5, :a, nil, 100]
# gives: [0, 1, 2, 2, -1, 3]

elements.pmap do |x|
  case x
  when nil then -1
  when 0, 1 then 0
  when 2..5 then 1
  when Float, Symbol then 2
  else
    case
    when x > 50 then 3
    end
  end
end
