# Threads share a line, whichever way the job counts through it.
#
# size = 2
# row = 5
# p = [1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 2.5, 3.5, 4.5, 5.5]
# q = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
# after: q => [1.5, 1.25, 4.0, 2.25, 6.5, 2.125, 1.5, 4.625, 2.5, 7.125]
# shows: team

(0...size).peach do |line|
  first = line * row
  last = first + row - 1
  i = last
  while i >= first
    q[i] = p[i] * 0.5
    i -= 1
  end
  first.step(last, 2) { |at| q[at] = q[at] * 0.5 + p[at] }
  while true
    q[first] += 0.25
    break if first >= last
    first += 1
  end
end
