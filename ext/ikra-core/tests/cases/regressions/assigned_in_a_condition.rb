# What a condition asked of a variable is not known of what a later part of it assigns; `&.` asks nothing of nil.
#
# elements = [1, nil, -3]
# gives: [[0, 1, 1, 7], [5, 9, 3, 8], [0, -3, -3, 7]]

elements.pmap do |x|
  a = x
  b = x
  c = x
  found = 0
  found = a if a.nil? && (a = [5].first)
  b = b + 0 unless b.nil? && [9].each { |y| b = y }
  set = -> { c = 3 }
  if c.nil? && set.call
    c = c.abs
  end
  d = x&.nil? ? 6 : x.nil? ? 8 : 7
  [found, b, c, d]
end
