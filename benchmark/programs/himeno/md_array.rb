# frozen_string_literal: true

class Program::Himeno
  def state(input)
    [input[:size], input[:iterations], *(COEFFICIENTS.keys + %i[p q]).map { |name| Ikra::MDArray.new(input.fetch(name).values) }]
  end

  def outputs(state, _result) = { p: state[-2].to_a, q: state[-1].to_a }

  # A tick is an iteration: from p to q in even ones, back in odd ones. All of it is one call.
  def compute((size, iterations, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p, q))
    row = 2 * size
    plane = size * row
    (0...size * plane).peach(iterations) do |i|
      x, within = i.divmod(plane)
      y, z = within.divmod(row)
      next if x == 0 || y == 0 || z == 0 || x == size - 1 || y == size - 1 || z == row - 1

      if Ikra.tick.even?
        s0 = a0[i] * p[i + plane] + a1[i] * p[i + row] + a2[i] * p[i + 1] +
             b0[i] * (p[i + plane + row] - p[i + plane - row] - p[i - plane + row] + p[i - plane - row]) +
             b1[i] * (p[i + row + 1] - p[i - row + 1] - p[i + row - 1] + p[i - row - 1]) +
             b2[i] * (p[i + plane + 1] - p[i - plane + 1] - p[i + plane - 1] + p[i - plane - 1]) +
             c0[i] * p[i - plane] + c1[i] * p[i - row] + c2[i] * p[i - 1] + work[i]
        ss = (s0 * a3[i] - p[i]) * bound[i]
        q[i] = p[i] + 0.8 * ss
      else
        s0 = a0[i] * q[i + plane] + a1[i] * q[i + row] + a2[i] * q[i + 1] +
             b0[i] * (q[i + plane + row] - q[i + plane - row] - q[i - plane + row] + q[i - plane - row]) +
             b1[i] * (q[i + row + 1] - q[i - row + 1] - q[i + row - 1] + q[i - row - 1]) +
             b2[i] * (q[i + plane + 1] - q[i - plane + 1] - q[i + plane - 1] + q[i - plane - 1]) +
             c0[i] * q[i - plane] + c1[i] * q[i - row] + c2[i] * q[i - 1] + work[i]
        ss = (s0 * a3[i] - q[i]) * bound[i]
        p[i] = q[i] + 0.8 * ss
      end
    end
  end
end
