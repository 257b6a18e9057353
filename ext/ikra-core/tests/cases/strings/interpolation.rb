# A String of a number and a literal.
#
# elements = [1, 20, -300]
# gives: ["1 m", "20 m", "-300 m"]
# checks: 6

elements.pmap { |x| "#{x} m" }
