# Arithmetic of 32 bits: the elements, the literal, and what each operator gives are rounded.
#
# elements = [0.1, -2.25, 1e300, 16777217.0]
# differs: the user asked for 32 bits
# options: precision f32
# gives: [0.036666665226221085, -0.824999988079071, Infinity, 6151646.0]

elements.pmap { |x| (x * 0.1 + x) / 3 }
