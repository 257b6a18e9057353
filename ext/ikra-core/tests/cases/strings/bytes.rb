# Strings by their bytes.
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# i = 0
# gives: [3000007, 2003388, 2084885, 601368708, 183709568, 4493867]
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# i = -2
# gives: [3000007, 2003118, 2084912, 605738334, 182528588, 4516466]

elements.pmap do |s|
  sum = s.bytesize * 1000 + (s.getbyte(i) || 7)
  s.each_byte { |b| sum = sum * 3 + b }
  sum + (s.empty? ? 1_000_000 : 0) + (s.ascii_only? ? 2_000_000 : 0)
end
