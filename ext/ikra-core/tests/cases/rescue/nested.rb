# Handlers in handlers: what a clause raises goes outward, and so does what no clause matches.
#
# elements = [0, 1, 2, 3, 4, 5, 6]
# gives: [1, 201, 402, 303, 104, 50, 106]

class Outer < StandardError; end
class Inner < Outer; end

elements.pmap do |x|
  begin
    begin
      raise Inner if x == 0
      raise Outer if x == 1
      raise TypeError if x == 2
      raise KeyError if x == 3
      raise Inner, "four" if x == 4
      raise Inner if x == 6
      x * 10
    rescue Inner => e
      raise e if x == 4
      raise if x == 6
      raise TypeError if x == -1
      x + 1
    rescue KeyError
      raise IndexError
    end
  rescue Outer => e
    e.is_a?(Inner) ? 100 + x : 200 + x
  rescue TypeError, IndexError => e
    case e
    when KeyError then 1
    when IndexError then 300 + x
    else 400 + x
    end
  end
end
