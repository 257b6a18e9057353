# ensure runs on every way out, inner ones first.
#
# elements = [0, 1, 2, 3, 4, 5]
# log = [0, 0, 0, 0, 0, 0]
# gives: [12, 100, 112, 1, 1001, 7]
# after: log => [2, 2, 2, 2, 2, 2]
# checks: 2

def run(x, log)
  i = 0
  while true
    begin
      log[x] += 1
      begin
        i += 1
        break if x == 0
        return 100 if x == 1
        i += 20 / (x - 2) * 0
        next if x == 3 && i < 2
        raise ArgumentError if x == 4
        return 7 if x == 5
        break
      ensure
        i += 10
      end
    rescue ZeroDivisionError
      i += 100
      break
    rescue ArgumentError
      i += 989
      break
    ensure
      log[x] += 1
      i += 1
      return 1 if x == 3
    end
  end
  i
end

elements.pmap { |x| run(x, log) }
