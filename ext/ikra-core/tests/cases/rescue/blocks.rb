# Exceptions and jumps through methods that take blocks: their ensures run, their clauses see what the block raises.
#
# elements = [0, 1, 2, 3, 4, 5, 6]
# log = [0, 0, 0, 0, 0, 0, 0]
# gives: [:zero, 8, 53, 90, -50, 9, 10]
# after: log => [1111, 1101, 101, 1101, 1101, 1101, 1101]
# checks: 3

class Full < StandardError; end

class Guard
  def self.each_guarded(log, x)
    log[x] += 1
    yield x
  rescue ZeroDivisionError
    log[x] += 10
    -1
  ensure
    log[x] += 100
  end

  def self.twice(log, x)
    each_guarded(log, x) { |i| yield i }
    begin
      yield x + 1
    ensure
      log[x] += 1000
    end
  end
end

def run(log, x)
  r = Guard.twice(log, x) do |i|
    next 7 if x == 1
    break 50 + i if x == 2
    return 90 if x == 3 && i == 4
    raise Full if x == 4 && i == 5
    12 / x + i
  end
  r + 1
rescue Full
  -50
end

elements.pmap do |x|
  run(log, x)
rescue ZeroDivisionError
  :zero
end
