# The simplest Rational near a number.
#
# elements = [0.3, -3.14, 0.001]
# gives: [[(3/10), (2/7)], [(-157/50), (-22/7)], [(1/1000), (0/1)]]

elements.pmap { |x| [x.rationalize, x.rationalize(1/50r)] }
