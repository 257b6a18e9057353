# A row that is the element's own and one that may be another's: the sums stay atomic.
#
# sums = [0, 0, 0, 0]
# after: sums => [3, 4, 4, 1]
# shows: after:register_promotion

(0...3).peach do |i|
  3.times { sums[i] += 1 }
  sums[i + 1] += 1
end
