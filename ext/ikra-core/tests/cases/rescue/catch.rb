# throw goes to the end of the catch of its tag, through loops, blocks and ensures.
#
# elements = [0, 1, 2, 3, 4, 5, 6]
# log = [0, 0, 0, 0, 0, 0, 0]
# gives: [1, 1, 103, 103, 54, 5, 56]
# after: log => [41, 11, 31, 1, 61, 11, 61]
# checks: 9

def each_logged(log, x)
  yield x
  yield x + 1
ensure
  log[x] += 1
end

elements.pmap do |x|
  r = catch(:done) do
    found = catch(:inner) do
      each_logged(log, x) do |i|
        3.times do |j|
          throw :done, 100 + i if i == 3
          throw :inner, j if i == 1 && j == 1
          begin
            throw :done if x == 5
          rescue StandardError
            throw :inner, -1
          ensure
            log[x] += 10
          end
        end
      end
      :none
    end
    throw :done, found if found == 1
    found == :none ? 50 + x : 2.5
  end
  r.nil? ? x : r
end
