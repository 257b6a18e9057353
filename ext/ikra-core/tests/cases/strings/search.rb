# Looking for one String within another.
#
# part = "an"
# elements = ["banana", "an", "a", "", "ananas", "żan"]
# gives: [6613331, 70080, 1108888, 8888, 6432220, 1351181]
# checks: 60
#
# part = ""
# elements = ["banana", ""]
# gives: [6674620, 78080]
#
# part = "ż"
# elements = ["banana", "ża", "aż", "aażżb"]
# gives: [6608888, 2130080, 1258181, 5513322]
#
# part = nil
# elements = ["banana"]
# raises: TypeError at line 21, index 0, tick 0: no implicit conversion of nil into String

elements.pmap do |s|
  a = s.index(part) || 8
  b = s.index(part, 2) || 8
  c = s.rindex(part) || 8
  d = s.rindex(part, -2) || 8
  a + b * 10 + c * 100 + d * 1000 + (s.include?(part) ? 10_000 : 0) + (s.start_with?(part) ? 20_000 : 0) + (s.end_with?(part) ? 40_000 : 0) + s.delete_prefix(part).size * 100_000 + s.delete_suffix(part).size * 1_000_000
end
