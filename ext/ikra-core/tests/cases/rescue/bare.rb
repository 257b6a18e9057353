# A bare raise raises what was rescued last: in the clause, in its ensure, in a method that it calls with a block.
#
# elements = [0, 1, 2]
# gives: [:zero, 11, 2]

class One < StandardError; end

def again
  yield
  raise
end

elements.pmap do |x|
  begin
    begin
      raise One if x == 1
      5 / x
    rescue ZeroDivisionError
      again { x + 1 }
    rescue One
      begin
        raise KeyError
      rescue KeyError
        x += 10
      end
      raise
    end
  rescue One
    x
  rescue ZeroDivisionError
    :zero
  end
end
