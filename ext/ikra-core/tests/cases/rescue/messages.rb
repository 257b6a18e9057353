# The message of a rescued exception: of the program's text, of Ruby's own, or a String that raise was given.
#
# names = ["", "a name"]
# elements = [0, 1, 2, 3, 4, 5, 6, 7, 8]
# gives: [["divided by 0", true, "ä"], ["Odd", false, "ä"], ["odd", false, "ä"], ["new", false, "ä"], ["", false, "ä"], ["ä", false, "ä"], ["Odd", false, "ä"], ["", false, "a name"], [nil, false, nil]]
# checks: 18

class Odd < StandardError; end

def check(x, names)
  raise Odd if x == 1
  raise Odd, "odd" if x == 2
  raise Odd.new("new") if x == 3
  raise ArgumentError, names[0] if x == 4
  raise "ä" if x == 5
  raise Odd.new if x == 6
  raise if x == 7
  x == 0 ? 10 / x : x
end

elements.pmap do |x|
  message = nil
  again = nil
  begin
    check(x, names)
  rescue StandardError => e
    message = e.message
    begin
      raise KeyError, message if x == 0
      raise ArgumentError, names[1] if x == 7
      raise IOError, x < 3 ? "ä" : "ä"
    rescue KeyError, IOError => inner
      again = inner.message == message ? "ä" : inner.to_s.empty? ? nil : "ä"
    rescue ArgumentError => inner
      again = inner.message
    end
  end
  [message, message == "divided by 0", again]
end
