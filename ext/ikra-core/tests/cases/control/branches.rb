# if, unless, elsif, ternaries and modifiers.
#
# elements = [-5, 0, 5, 50]
# gives: [9, 0, 33, -178]

elements.pmap do |x|
  y = if x < 0 then -1
      elsif x.zero? then 0
      else 1
      end
  y += 10 unless x == 0
  y -= 100 if x > 10
  unless x > 0
    y
  else
    x > 5 ? y * 2 : y * 3
  end
end
