# Ranges with an end that is nil, or of another kind of number than the beginning.
#
# elements = [1, 5, -3]
# gives: [[6, :middle, 1, true, nil, nil, 1], [6, :large, 5, false, 0.5..5, true, 5], [6, :small, -3, false, nil, nil, -3]]
# checks: 4

elements.pmap do |x|
  found = nil
  (x..).each do |i|
    if i * i > 30
      found = i
      break
    end
  end
  kind = case x
         when 4.. then :large
         when ..0 then :small
         else :middle
         end
  r = x > 2 ? (0.5..x) : nil
  [found, kind, (x..).first, (1..2.5).include?(x), r, r && r.cover?(x), (..x).end]
end
