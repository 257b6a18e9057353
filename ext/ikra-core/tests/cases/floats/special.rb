# NaN, infinities and negative zero keep Ruby's rules.
#
# elements = [Float::NAN, Float::INFINITY, -Float::INFINITY, -0.0, 0.0, 1.0]
# gives: [:nan, NaN, NaN, -Infinity, Infinity, nil]

elements.pmap do |x|
  if x.nan? then :nan
  elsif x == 0 then 1 / x
  elsif x.infinite? then x * 0
  else x <=> Float::NAN
  end
end
