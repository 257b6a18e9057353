# Values that a loop carries stay in 32 bits, and so does what is compared. The counter is not a Float.
#
# elements = [0.1, -0.75, 0.25]
# differs: the user asked for 32 bits
# options: precision f32
# gives: [0.1835760921239853, 0.1197500228881836, 1.3597493171691895]

elements.pmap do |c|
  z = 0.0
  i = 0
  while i < 6 && z < 2.0
    z = z * z + c * 1.5
    i += 1
  end
  z
end
