# `&.` gives nil for nil and calls everything else, its arguments only when it calls.
#
# elements = [nil, 4, 2.5]
# gives: [0, 19, 15.5]

elements.pmap do |x|
  calls = 0
  y = x&.+((calls += 1; 10))
  z = x&.abs&.floor
  y.nil? && z.nil? ? calls : y + z + calls
end
