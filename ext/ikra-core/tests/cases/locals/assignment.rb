# Plain, chained, operator and multiple assignment.
#
# elements = [1, 2, 3]
# gives: [111122, 122448, 133978]

elements.pmap do |x|
  a = b = x
  a += 10
  b *= a
  c, d = a, b
  c, d = d, c
  e ||= c
  e &&= e - d
  a * 10000 + b * 100 + c + e + d
end
