# A captured String is read.
#
# text = "text"
# elements = [1]
# gives: [5]

elements.pmap { |x| x + text.size }
