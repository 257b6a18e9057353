# Only nil and false are falsy; `and`, `or`, `not` and `!` give operands or booleans.
#
# elements = [nil, false, true, 0, 0.0, :a]
# gives: [1, 1, true, false, false, true]

elements.pmap { |x| !x ? (x || 1) : (x && x != 0 && !x.nil?) }
