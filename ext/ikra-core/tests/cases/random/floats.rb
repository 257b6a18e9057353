# Floats between 0 and 1, and from Ranges; several draws of one element differ.
#
# elements = [0.0, 10.0, 100.0]
# gives: [4.3450518808746255, 24.954414540403572, 157.78809778350123]

elements.pmap { |x| x + rand + rand * 10 + rand(1.5..2.5) + rand(0.0...x + 1) }
