# What an Array adds up exactly before its first Float, also from a start that is a Float.
#
# list = [9007199254740992, 1, 1]
# mixed = [9007199254740992, 1, 0.5, 1]
# elements = [0.5, 1]
# gives: [[9.007199254740994e+15, 9.007199254740994e+15, 9.007199254740994e+15, 0.6, 9.007199254740994e+15, 0.0, 6.5], [9007199254740995, 9.007199254740996e+15, 9.007199254740994e+15, 0.6, 9.007199254740994e+15, 0.0, 6.5]]
# checks: 13

elements.pmap { |x| [list.sum(x), mixed.sum(x), mixed.sum(0.5), [0.1, 0.2, 0.3].sum(0.0), list.sum(0.5) { |y| y }, [-0.0].sum(-0.0), (1..3).sum(0.5)] }
