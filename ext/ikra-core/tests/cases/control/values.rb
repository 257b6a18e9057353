# Every construct has a value.
#
# elements = [0, 1, 2]
# gives: [:zero, 6, 5]

elements.pmap do |x|
  a = if x > 1 then 5 end
  b = (x > 0 and 7)
  c = begin
    x + 1
    x + 2
  end
  d = while x < 0 do end
  e = case x when 0 then :zero end
  f = 2.times { }
  g = (@missing.nil? ? 1 : 2)
  a || (b ? c + f + g : (d.nil? ? e : 0))
end
