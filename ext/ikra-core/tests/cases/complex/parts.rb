# The parts of Complexes, and how they are made.
#
# elements = [0.25, -1.5, -0.0]
# gives: [[0.25, 4, 4.00780488547035, 16.0625, (-0.25-4i), (0.25+4i), (0.25-4i), 0.25, 4, (-4.0+0.25i), [(0.25+4i), (0+1i), (0.25+0i)], (-4.0+0.25i), false, false, true, nil, (0.5+5i), true, true, 1.5], [-1.5, 4, 4.272001872658765, 18.25, (1.5-4i), (-1.5+4i), (-1.5-4i), -1.5, 4, nil, [(-1.5+4i), (0+1i), (-1.5+0i)], (-1.5-4i), false, false, true, nil, (-3.0+5i), true, true, 1.5], [-0.0, 4, 4.0, 16.0, (0.0-4i), (-0.0+4i), (-0.0-4i), -0.0, 4, nil, [(-0.0+4i), (0+1i), (-0.0+0i)], (-0.0-4i), false, false, true, nil, (-0.0+5i), true, true, 1.5]]
# checks: 30
#
# elements = [0, 3, -4]
# gives: [[0, 4, 4, 16, (0-4i), (0+4i), (0-4i), 0, 4, nil, [(0+4i), (0+1i), (0+0i)], (0-4i), false, false, true, nil, (0+5i), true, true, 1.5], [3, 4, 5.0, 25, (-3-4i), (3+4i), (3-4i), 3, 4, (-4+3i), [(3+4i), (0+1i), (3+0i)], (-4+3i), false, false, true, nil, (6+5i), true, true, 1.5], [-4, 4, 5.656854249492381, 32, (4-4i), (-4+4i), (-4-4i), -4, 4, nil, [(-4+4i), (0+1i), (-4+0i)], (-4-4i), false, false, true, nil, (-8+5i), true, true, 1.5]]

I = Complex.rect(0, 1)

class Holder
  attr_accessor :z
end

elements.pmap do |x|
  z = Complex(x, 4)
  w = x > 0 ? z * 1i : nil
  list = [z, I, Complex.rect(x)]
  holder = Holder.new
  holder.z = w || z.conj
  a, b = z.rect
  [z.real, z.imag, z.abs, z.abs2, -z, +z, z.conjugate, a, b, w, list, holder.z, z.real?, z.zero?, z.finite?, z.infinite?, list.sum, z.eql?(Complex(x, 4)), z.is_a?(Numeric), (1.5i).imaginary]
end
