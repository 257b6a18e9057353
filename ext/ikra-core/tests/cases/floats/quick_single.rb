# Quotients and roots of 32 bits in a loop have no branches on a GPU. Behind the loop it is looked at whether all
# operands were ordinary.
#
# elements = [1.0, 0.5, 1e-30]
# divisors = [2.5, 0.1, 7.0]
# differs: the user asked for 32 bits
# options: precision f32
# gives: [1.507849097251892, 1.2479438781738281, 1.0542857240773615e-29]

elements.pmap do |x|
  all = 0.0
  divisors.each { |by| all += x / Math.sqrt(x * x + by * by) }
  all
end
