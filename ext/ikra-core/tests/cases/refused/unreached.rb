# What is never reached is no error.
#
# elements = [1, 2]
# gives: [1, 2]

elements.pmap { |x| x.is_a?(Float) ? "#{x} m" : x }
