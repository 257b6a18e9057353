# Ranges are equal where their ends are, and both or neither leave the last out.
#
# r = (1..5)
# elements = [0, 1]
# gives: [117, 85]

elements.pmap do |i|
  bits = 0
  bits += 1 if r == (1..5)
  bits += 2 if r == (1...5)
  bits += 4 if r == (1.0..5.0)
  bits += 8 if r.eql?(1.0..5.0)
  bits += 16 if r.eql?(1..5)
  bits += 32 if r != (i..5)
  bits += 64 if (i..2.5) == (i.to_f..2.5)
  bits += 128 if r == i
  bits
end
