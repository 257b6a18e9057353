# The arrays that a job reads and writes are chosen for each element, always in the same way. The exit of the loop is
# a break.
#
# size = 2
# row = 5
# p = [1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 2.5, 3.5, 4.5, 5.5]
# q = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
# after: q => [0.0, 4.0, 6.0, 8.0, 0.0, 0.0, 5.0, 7.0, 9.0, 0.0]
# after: p => [1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 2.5, 3.5, 4.5, 5.5]
# shows: team

(0...size).peach do |line|
  i = line * row + 1
  loop do
    break if i > line * row + row - 2
    from, to = Ikra.tick.even? ? [p, q] : [q, p]
    to[i] = from[i - 1] + from[i + 1]
    i += 1
  end
end
