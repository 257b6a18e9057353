# Lambdas and procs in variables, passed on, returned from and chosen between.
#
# elements = [0, 1, 7]
# gives: [0, 13, 84]

module Calls
  def self.apply(f, x)
    f.call(x)
  end

  def self.pass(x, &block)
    again(x, &block) + block.(x) + block[x]
  end

  def self.again(x)
    return 1000 unless block_given?

    yield x
  end
end

elements.pmap do |x|
  double = ->(y) { return 0 if y < 0; y * 2 }
  square = lambda { |y| y * y }
  chosen = x > 3 ? square : double
  n = 5
  sum = Calls.apply(double, x) + Calls.apply(chosen, x) - Calls.apply(square, x)
  n += Calls.pass(x) { |y| n += 0; y - 1 }
  n -= Calls.pass(x, &:succ)
  n += Calls.pass(x, &double)
  n += double.(-1) + x.then { |y| y + 1 } + x.tap { |y| y + 1 }
  n += x.send(:+, 1) + x.public_send(:-, 1)
  sum + n
end
