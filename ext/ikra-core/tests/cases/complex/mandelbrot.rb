# How many steps a point takes to leave the circle: Complexes that are registers.
#
# elements = [Complex.rect(0.0, 0.0), Complex.rect(-0.5, 0.5), Complex.rect(1.0, 1.0), Complex.rect(-1.75, 0.01), Complex.rect(0.3, -0.5)]
# gives: [50, 50, 2, 50, 50]
# checks: 0

elements.pmap do |c|
  z = Complex(0.0, 0.0)
  n = 0
  while z.abs < 2 && n < 50
    z = z * z + c
    n += 1
  end
  n
end
