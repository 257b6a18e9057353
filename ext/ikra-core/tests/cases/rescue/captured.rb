# Captured locals accumulate in bodies and clauses.
#
# elements = [0, 1, 2, 0, 4]
# sum = 0
# failed = 0
# last = nil
# after: sum => 180
# after: failed => 2
# after: last => :fine

elements.peach do |x|
  begin
    sum += 100 / x
    last = :fine
  rescue ZeroDivisionError
    failed += 1
    last = x
  ensure
    sum += 1
  end
end
