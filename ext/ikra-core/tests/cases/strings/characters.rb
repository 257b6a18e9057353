# Characters, and parts of Strings by them.
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# gives: [0, 101111, 103333, 210666, 9333, 106333]
# checks: 17

elements.pmap do |s|
  n = 0
  s.each_char { |c| n += c.bytesize * 10 + (c == "ó" || c == "a" ? 1000 : 0) + (s.include?(c) ? 1 : 0) }
  n * 100 + s.size * 10 + s.length
end
