# s[…] with an Integer, a start and a length, a Range, a String; byteslice likewise.
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# how = 0
# gives: [nil, nil, "b", "a", "本", "😀"]
# checks: 43
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# how = 1
# gives: [nil, "a", "c", "ć", "語", "b"]
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# how = 2
# gives: [nil, "", "bc", "aż", "本語", "😀b"]
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# how = 3
# gives: [nil, nil, "abc", "ółć", "日本語", "a😀b"]
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# how = 4
# gives: [nil, "", "b", "ażół", "本", "😀"]
#
# elements = ["", "a", "abc", "zażółć", "日本語", "a😀b"]
# how = 5
# gives: ["", "a", "ab", "za", "日本", "a😀"]
#
# elements = ["", "a", "abc", "zażółć"]
# how = 6
# gives: [nil, nil, "b", ""]
#
# elements = ["", "a", "abc", "zażółć"]
# how = 7
# gives: ["", "a", "ab", "za"]
#
# elements = ["", "a", "abc", "zażółć"]
# how = 8
# gives: [nil, nil, "bc", "ć"]
#
# elements = ["", "a", "abc", "zażółć"]
# how = 9
# gives: [nil, nil, "", ""]

elements.pmap do |s|
  case how
  when 0 then s[1]
  when 1 then s[-1]
  when 2 then s[1, 2]
  when 3 then s[-3, 99]
  when 4 then s[1..-2]
  when 5 then s[0...2]
  when 6 then s["b"] || s[3, 0]
  when 7 then s.byteslice(0, 2)
  when 8 then s.byteslice(-2..-1)
  else s.byteslice(1) && s[3..1]
  end
end
