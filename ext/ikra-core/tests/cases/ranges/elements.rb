# Ranges as elements: of Integers, of Floats, of both, without an end.
#
# elements = [1..3, 1...3, 0..-1, -5..5]
# gives: [[1..3, true, [1, 3, false], true, false, true, 1], [1...3, true, [1, 3, true], false, true, true, 1], [0..-1, false, [0, -1, false], false, true, true, 2], [-5..5, true, [-5, 5, false], false, true, true, 1]]
#
# elements = [1..3, 1.5..2.5, 2..2.5, 0.5...1, 7.., nil..2, nil...2.0]
# gives: [[1..3, true, [1, 3, false], true, false, true, 1], [1.5..2.5, true, [1.5, 2.5, false], false, true, true, 1], [2..2.5, true, [2, 2.5, false], false, true, true, 1], [0.5...1, false, [0.5, 1, true], false, true, true, 2], [7.., false, [7, nil, false], false, true, true, 2], [..2, true, [nil, 2, false], false, true, true, 2], [...2.0, false, [nil, 2.0, true], false, true, true, 2]]
#
# elements = [nil, 1..2]
# gives: [[nil, nil, 0, false, true, false, 2], [1..2, true, [1, 2, false], false, true, true, 2]]

elements.pmap do |r|
  [r, r && r.include?(2), r ? [r.begin, r.end, r.exclude_end?] : 0, r == (1..3), r != (1..3), r.is_a?(Range), (r === 2.25 ? 1 : 2)]
end
