# Arrays that grow where something may be raised, and go on growing in clauses, in ensure and after it.
#
# elements = [0, 1, 2, 5]
# gives: [[[1, 7, 101, 2, 7, 102], [0, 1, 0, 0]], [[0, 100, 101, 2, -2, 102], [1, 1]], [[7, 100, 1, 7, 101, 102], [0, 2, 2, 2]], [[7, 100, 1, 7, 101, 2, 7, 102], [0, 5, 5, 5]]]
# checks: 25

elements.pmap do |x|
  seen = []
  steps = []
  3.times do |i|
    begin
      next if i == x
      seen << i
      10 / (x - 1)
      steps.push(i) if steps.size < 2
    rescue ZeroDivisionError
      seen << -i
      steps.pop unless steps.empty?
    else
      seen << 7
    ensure
      seen << 100 + i
      steps << x
    end
  end
  seen.shift
  [seen, steps]
end
