# frozen_string_literal: true

class Program::Himeno
  def compute((size, iterations, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p, q))
    row = 2 * size
    plane = size * row
    iterations.times do
      from, to = p, q
      (1...size - 1).each do |x|
        (1...size - 1).each do |y|
          (1...row - 1).each do |z|
            i = x * plane + y * row + z
            s0 = a0[i] * from[i + plane] + a1[i] * from[i + row] + a2[i] * from[i + 1] +
                 b0[i] * (from[i + plane + row] - from[i + plane - row] - from[i - plane + row] + from[i - plane - row]) +
                 b1[i] * (from[i + row + 1] - from[i - row + 1] - from[i + row - 1] + from[i - row - 1]) +
                 b2[i] * (from[i + plane + 1] - from[i - plane + 1] - from[i + plane - 1] + from[i - plane - 1]) +
                 c0[i] * from[i - plane] + c1[i] * from[i - row] + c2[i] * from[i - 1] + work[i]
            ss = (s0 * a3[i] - from[i]) * bound[i]
            to[i] = from[i] + 0.8 * ss
          end
        end
      end
      p, q = q, p
    end
  end
end
