# frozen_string_literal: true

class Program::Himeno
  # The pressure that an iteration makes of a point: sums in the order of the program's.
  def pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, from)
    s0 = a0[i] * from[i + plane] + a1[i] * from[i + row] + a2[i] * from[i + 1] +
         b0[i] * (from[i + plane + row] - from[i + plane - row] - from[i - plane + row] + from[i - plane - row]) +
         b1[i] * (from[i + row + 1] - from[i - row + 1] - from[i + row - 1] + from[i - row - 1]) +
         b2[i] * (from[i + plane + 1] - from[i - plane + 1] - from[i + plane - 1] + from[i - plane - 1]) +
         c0[i] * from[i - plane] + c1[i] * from[i - row] + c2[i] * from[i - 1] + work[i]
    from[i] + 0.8 * ((s0 * a3[i] - from[i]) * bound[i])
  end

  phrasing "flat Arrays, a method, divmod, an early next" do
    def compute((size, iterations, *coefficients, p, q))
      a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = coefficients
      row = 2 * size
      plane = size * row
      (0...size * plane).peach(iterations) do |i|
        x, within = i.divmod(plane)
        y, z = within.divmod(row)
        next if x == 0 || y == 0 || z == 0 || x == size - 1 || y == size - 1 || z == row - 1

        if Ikra.tick.even?
          q[i] = pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p)
        else
          p[i] = pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, q)
        end
      end
    end
  end

  phrasing "flat Arrays, a call for each iteration, a guard by between?, / and %" do
    def compute((size, iterations, *coefficients, p, q))
      a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = coefficients
      row = 2 * size
      plane = size * row
      iterations.times do
        (0...size * plane).peach do |i|
          inside = (i / plane).between?(1, size - 2) && (i % plane / row).between?(1, size - 2) && (i % row).between?(1, row - 2)
          q[i] = pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p) if inside
        end
        p, q = q, p
      end
    end
  end

  phrasing "flat Arrays, the inner points alone, no guard" do
    def compute((size, iterations, *coefficients, p, q))
      a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = coefficients
      row = 2 * size
      plane = size * row
      inner = size - 2
      (0...inner * inner * (row - 2)).peach(iterations) do |point|
        line, z = point.divmod(row - 2)
        x, y = line.divmod(inner)
        i = (x + 1) * plane + (y + 1) * row + z + 1
        from, to = Ikra.tick.even? ? [p, q] : [q, p]
        to[i] = pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, from)
      end
    end
  end

  phrasing "flat Arrays, a job for each line, step" do
    def compute((size, iterations, *coefficients, p, q))
      a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = coefficients
      row = 2 * size
      plane = size * row
      (0...size * size).peach(iterations) do |line|
        x, y = line.divmod(size)
        next unless x > 0 && x < size - 1 && y > 0 && y < size - 1

        (line * row + 1).step(line * row + row - 2, 1) do |i|
          if Ikra.tick.even?
            q[i] = pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p)
          else
            p[i] = pressure(i, row, plane, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, q)
          end
        end
      end
    end
  end

  # The Arrays of a box, with methods cut small.
  class Box
    def initialize(size, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work)
      @row = 2 * size
      @plane = size * @row
      @size = size
      @a0, @a1, @a2, @a3, @b0, @b1, @b2, @c0, @c1, @c2, @bound, @work = a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work
    end

    def points = @size * @plane
    def inside?(x, y, z) = x > 0 && y > 0 && z > 0 && x < @size - 1 && y < @size - 1 && z < @row - 1
    def inner?(i) = inside?(i / @plane, i % @plane / @row, i % @row)
    def corners(from, i, one, other) = from[i + one + other] - from[i + one - other] - from[i - one + other] + from[i - one - other]
    def ahead(from, i) = @a0[i] * from[i + @plane] + @a1[i] * from[i + @row] + @a2[i] * from[i + 1]

    def sum(from, i)
      ahead(from, i) + @b0[i] * corners(from, i, @plane, @row) + @b1[i] * (from[i + @row + 1] - from[i - @row + 1] - from[i + @row - 1] + from[i - @row - 1]) +
        @b2[i] * (from[i + @plane + 1] - from[i - @plane + 1] - from[i + @plane - 1] + from[i - @plane - 1]) +
        @c0[i] * from[i - @plane] + @c1[i] * from[i - @row] + @c2[i] * from[i - 1] + @work[i]
    end

    def residual(from, i) = (sum(from, i) * @a3[i] - from[i]) * @bound[i]
    def relax(from, to, i) = to[i] = from[i] + 0.8 * residual(from, i)
  end

  phrasing "an object with the Arrays, methods cut small" do
    def state(input)
      size, iterations, *coefficients, p, q = super
      [Box.new(size, *coefficients), iterations, p, q]
    end

    def compute((box, iterations, p, q))
      (0...box.points).peach(iterations) do |i|
        next unless box.inner?(i)

        Ikra.tick.even? ? box.relax(p, q, i) : box.relax(q, p, i)
      end
    end
  end

  # Arrays of planes of lines, or MDArrays.
  module Nested
    def nested(input, name) = input.fetch(name).values.each_slice(2 * input[:size]).each_slice(input[:size]).to_a
    def state(input) = [input[:size], input[:iterations], *(COEFFICIENTS.keys + %i[p q]).map { |name| nested(input, name) }]
    def outputs(state, _result) = { p: state[-2].flatten(2), q: state[-1].flatten(2) }
  end

  phrasing "nested Arrays, three indices" do
    include Nested

    def relax(x, y, z, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, from, to)
      s0 = a0[x][y][z] * from[x + 1][y][z] + a1[x][y][z] * from[x][y + 1][z] + a2[x][y][z] * from[x][y][z + 1] +
           b0[x][y][z] * (from[x + 1][y + 1][z] - from[x + 1][y - 1][z] - from[x - 1][y + 1][z] + from[x - 1][y - 1][z]) +
           b1[x][y][z] * (from[x][y + 1][z + 1] - from[x][y - 1][z + 1] - from[x][y + 1][z - 1] + from[x][y - 1][z - 1]) +
           b2[x][y][z] * (from[x + 1][y][z + 1] - from[x - 1][y][z + 1] - from[x + 1][y][z - 1] + from[x - 1][y][z - 1]) +
           c0[x][y][z] * from[x - 1][y][z] + c1[x][y][z] * from[x][y - 1][z] + c2[x][y][z] * from[x][y][z - 1] + work[x][y][z]
      to[x][y][z] = from[x][y][z] + 0.8 * ((s0 * a3[x][y][z] - from[x][y][z]) * bound[x][y][z])
    end

    def compute((size, iterations, *coefficients, p, q))
      a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = coefficients
      (0...2 * size**3).peach(iterations) do |i|
        line, z = i.divmod(2 * size)
        x, y = line.divmod(size)
        next if x == 0 || y == 0 || z == 0 || x == size - 1 || y == size - 1 || z == 2 * size - 1

        from, to = Ikra.tick.even? ? [p, q] : [q, p]
        relax(x, y, z, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, from, to)
      end
    end
  end

  phrasing "MDArrays, three indices" do
    include Nested

    def state(input)
      size, iterations, *arrays = super
      [size, iterations, *arrays.map { |array| Ikra::MDArray.new(array) }]
    end

    def outputs(state, _result) = { p: state[-2].to_a.flatten(2), q: state[-1].to_a.flatten(2) }

    def relax(x, y, z, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, from, to)
      s0 = a0[x, y, z] * from[x + 1, y, z] + a1[x, y, z] * from[x, y + 1, z] + a2[x, y, z] * from[x, y, z + 1] +
           b0[x, y, z] * (from[x + 1, y + 1, z] - from[x + 1, y - 1, z] - from[x - 1, y + 1, z] + from[x - 1, y - 1, z]) +
           b1[x, y, z] * (from[x, y + 1, z + 1] - from[x, y - 1, z + 1] - from[x, y + 1, z - 1] + from[x, y - 1, z - 1]) +
           b2[x, y, z] * (from[x + 1, y, z + 1] - from[x - 1, y, z + 1] - from[x + 1, y, z - 1] + from[x - 1, y, z - 1]) +
           c0[x, y, z] * from[x - 1, y, z] + c1[x, y, z] * from[x, y - 1, z] + c2[x, y, z] * from[x, y, z - 1] + work[x, y, z]
      to[x, y, z] = from[x, y, z] + 0.8 * ((s0 * a3[x, y, z] - from[x, y, z]) * bound[x, y, z])
    end

    def compute((size, iterations, *coefficients, p, q))
      a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = coefficients
      (0...2 * size**3).peach(iterations) do |i|
        line, z = i.divmod(2 * size)
        x, y = line.divmod(size)
        next if x == 0 || y == 0 || z == 0 || x == size - 1 || y == size - 1 || z == 2 * size - 1

        Ikra.tick.even? ? relax(x, y, z, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p, q) : relax(x, y, z, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, q, p)
      end
    end
  end
end
