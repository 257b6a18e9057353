# Exceptions leave iterators and their blocks; a block may have clauses of its own.
#
# elements = [0, 1, 2, 5, 6]
# numbers = [3, 2, 1, 0, -1]
# gives: [500007, :some, 298503, :some, 500018]

elements.pmap do |x|
  sum = 0
  found = begin
    numbers.each do |n|
      sum += x / n
    end
    :all
  rescue ZeroDivisionError
    5.times do |i|
      sum += 1000 / (i - 2)
    rescue ZeroDivisionError => e
      next if x == 1
      break if x == 2
      sum += 7
    ensure
      sum += 100_000
    end
    :some
  end
  x.even? ? sum : found
end
