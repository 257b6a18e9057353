# `==`, `equal?`, `eql?` and `!=` between kinds.
#
# elements = [1, 1.0, 2, nil, :one, true]
# gives: [1111, 1001, 0, 1000, 1000, 1000]

elements.pmap { |x| (x == 1 ? 1 : 0) + (x.eql?(1) ? 10 : 0) + (x.equal?(1) ? 100 : 0) + (x != 2 ? 1000 : 0) }
