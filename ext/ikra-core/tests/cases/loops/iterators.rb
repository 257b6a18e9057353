# times, upto, downto, step, Range#each and for, with next and break.
#
# elements = [0, 1, 4]
# gives: [0, 17, 6721]

elements.pmap do |x|
  sum = 0
  x.times { |i| sum += i }
  1.upto(x) { |i| sum += i * 10 }
  x.downto(2) { |i| next if i == 3; sum += i * 100 }
  0.step(x, 2) { |i| sum += i * 1000 }
  (0...x).each { |i| break if i > 2; sum += 7 }
  for i in 1..x do sum -= i end
  sum + (i || 0)
end
