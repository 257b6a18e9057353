# Parameters * and ** without a name take what nobody looks at.
#
# elements = [1, 2]
# gives: [90, 202]

module Calls
  def self.some(a, b = 5, *, c)
    a + b * 10 + c * 100
  end

  def self.keys(a:, **)
    a
  end
end

elements.pmap do |x|
  Calls.some(x, x, 9, 8, x) + Calls.keys(a: x, b: 7) + Calls.some(x, x) - Calls.some(x, 3, x) - 42
end
