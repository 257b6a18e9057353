# A body that cannot raise, one that always does, and clauses that nothing reaches.
#
# elements = [1, 2]
# gives: [105, 106]

class Unused < StandardError; end

def always(x)
  raise ArgumentError
ensure
  x + 1
end

elements.pmap do |x|
  a = begin
    x
  rescue Unused
    :never
  end
  b = begin
    always(x)
    2.5
  rescue Unused
    1.5
  rescue ArgumentError
    4
  end
  c = begin
    raise "no"
  rescue
    begin
      raise Unused
    rescue Unused
      100
    end
  end
  a + b + c
end
