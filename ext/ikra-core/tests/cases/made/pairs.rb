# Pairs that methods make and take apart, also from one repetition to the next, are registers.
#
# elements = [0, 1, 2, 3]
# gives: [8, 3, 2, 1]

def square(z) = [z[0] * z[0] - z[1] * z[1], 2.0 * z[0] * z[1]]
def add(a, b) = [a[0] + b[0], a[1] + b[1]]
def norm(z) = z[0] * z[0] + z[1] * z[1]

elements.pmap do |i|
  c = [i * 0.75, 0.0]
  z = [0.0, 0.0]
  steps = 0
  while steps < 8 && norm(z) <= 4.0
    z = add(square(z), c)
    steps += 1
  end
  steps
end
