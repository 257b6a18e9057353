# The loop counts before it decides whether to go on, and what it does stands behind that. So one thread runs it.
#
# size = 2
# row = 5
# p = [1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 2.5, 3.5, 4.5, 5.5]
# q = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
# after: q => [0.5, 1.0, 1.5, 2.0, 2.5, 0.75, 1.25, 1.75, 2.25, 2.75]
# shows: team

(0...size).peach do |line|
  at = line * row - 1
  loop do
    at += 1
    break if at == line * row + row
    q[at] = p[at] * 0.5
  end
end
