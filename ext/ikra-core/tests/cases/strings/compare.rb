# Equality and order of Strings.
#
# other = "abc"
# elements = ["abc", "abd", "ab", "abcd", "", "ABC", "żaba", nil, :abc, 1]
# gives: [11021101, -1030010, 10110010, 11030010, 110010, 110015, 1030010, 10, 10, 10]
# checks: 8
#
# other = "żółw"
# elements = ["żółw", "żółwie", "z", "ż"]
# gives: [1021101, 1030010, 110010, -110010]

elements.pmap do |s|
  bits = 0
  bits += 1 if s == other
  bits += 10 if s != other
  bits += 100 if s.eql?(other)
  bits += 1000 if other === s
  if s.is_a?(String)
    bits += 10_000 * ((s <=> other) + 2)
    bits += 100_000 if s < other
    bits += 1_000_000 if s >= other
    bits += 10_000_000 if s.between?("ab", "abcz")
  end
  case s
  when "abd", "ż" then bits = -bits
  when "ABC" then bits += 5
  end
  bits
end
