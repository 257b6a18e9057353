# What stands for an Enumerator, and blocks that append as the last thing they do, in loops that a method of the user's runs.
#
# list = [5, 6, 7]
# elements = ["abc", "", "żó"]
# gives: [[["a", "b", "c"], [97, 196, 297], [3, 2, 1], [[5, 6], [7]], [7, 7, 7], [3, 4, 2, 3, 1, 2], 7, ["c", "b", "a"], 294, [1, 1, 1], [5, 12, 21], [0, 7], [["b", 1], ["c", 2]]], [[], [], [], [[5, 6], [7]], [7, 7, 7], [3, 4, 2, 3, 1, 2], 0, [], 0, [], [5, 12, 21], [0, 7], []], [["ż", "ó"], [197, 376, 585, 716], [2, 1], [[5, 6], [7]], [7, 7, 7], [3, 4, 2, 3, 1, 2], 3, ["ó", "ż"], 759, [2, 2], [5, 12, 21], [0, 7], [["ó", 1]]]]
# checks: 67

def from(a)
  while a > 0
    yield a
    a -= 1
  end
end

def twice(a) = yield(a) + yield(a + 1)

elements.pmap do |s|
  a = []
  s.each_char { |c| a << c }
  b = []
  s.each_byte.with_index(1) { |byte, i| b << byte * i }
  c = []
  from(s.size) { |n| c << n }
  d = []
  list.each_slice(2) { |slice| d << slice }
  e = []
  list.reverse_each.with_index { |x, i| e << x + i }
  f = []
  g = twice(s.size) { |n| n > 2 ? n : 0 }
  from(3) { |n| twice(n) { |k| f << k; k } }
  [a, b, c, d, e, f, g, s.chars.reverse, s.bytes.sum, s.each_char.map { |x| x.bytesize }, list.each.with_index(1).map { |x, i| x * i },
   list.each_slice(2).with_index.map { |x, i| x.sum * i }, s.each_char.with_index.select { |x, i| i > 0 }]
end
