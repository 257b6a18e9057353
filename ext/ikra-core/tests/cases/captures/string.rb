# A captured String that the block uses cannot be held.
#
# text = "text"
# elements = [1]
# refused: text

elements.pmap { |x| x + text.size }
