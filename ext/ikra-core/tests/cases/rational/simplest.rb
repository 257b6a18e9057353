# The simplest Rational near another.
#
# elements = [Rational(1, 3), Rational(-311, 100)]
# gives: [(1/3), (-28/9)]
# checks: 38

elements.pmap { |x| x.rationalize(1/200r) }
