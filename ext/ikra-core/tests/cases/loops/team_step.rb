# A job makes a line of one array from three lines of another. Which is which depends on the tick.
#
# size = 3
# row = 5
# p = [1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 2.5, 3.5, 4.5, 5.5, 1.0, 2.0, 3.0, 4.0, 5.0]
# q = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
# after: q => [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, 13.0, 16.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
# after: p => [1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 13.0, 26.0, 13.0, 5.5, 1.0, 2.0, 3.0, 4.0, 5.0]
# shows: team

(0...size).peach(2) do |line|
  next unless line > 0 && line < size - 1
  (line * row + 1).step(line * row + row - 2, 1) do |i|
    if Ikra.tick.even?
      q[i] = p[i] + p[i - row] + p[i + row] + p[i + 1] - p[i - 1] + 1.5
    else
      p[i] = q[i - 1] + q[i + 1] + q[i - row] + q[i + row]
    end
  end
end
