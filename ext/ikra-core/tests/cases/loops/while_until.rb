# while, until, begin … end while, break with a value, loop.
#
# elements = [0, 1, 6, 27]
# gives: [13, 13, 13, 116]

elements.pmap do |x|
  steps = 0
  n = x
  until n <= 1
    n = n.even? ? n / 2 : n * 3 + 1
    steps += 1
  end
  begin
    steps += 1
  end while steps < 3
  found = while true
            break steps if steps % 5 == 0
            steps += 1
          end
  loop do
    found += 1
    break if found > 12
  end
  found
end
