# Ranges in unions, instance variables, arrays and results; as elements and captured.
#
# limits = (2..4)
# ways = [1..3, 0...2, 5..1]
# elements = [Span(range: 1..3, other: nil), Span(range: 4...4, other: 1.5..2.5), Span(range: -2..2, other: 3.0...3.0)]
# gives: [[2..4, 36, [1..3, 0..29, 11..13], nil, nil, [1, 2, 3], 29, true, false], [nil, 3, [4...4, 0..1, 14..14], true, 1.5..2.5, [1, 2, 3], -1, false, false], [-1..3, 26, [-2..2, 0..15, 8..12], false, 3.0...3.0, [], 15, true, false]]
# after: elements[0].range => 1..3
# after: elements[1].last => 0..0
# checks: 68

class Span
  attr_accessor :range, :other, :last

  def shifted(by) = (range.begin + by..range.end + by)
end

elements.pmap do |span|
  r = span.range.size > 2 ? span.shifted(1) : nil
  sum = r ? r.sum { |x| x * x } : -1
  pieces = [span.range, 0..sum.abs, span.shifted(10)]
  span.last = r || (0..0)
  span.range = (span.range.first..span.range.max) if span.range.min
  case sum
  when limits then sum = 7
  when span.range then sum = 8
  end
  [r, pieces.sum(&:size), pieces, span.other&.include?(2.0), span.other, ways[span.range.size % 3].to_a, sum, span.shifted(0) == span.range, r == span.range]
end
